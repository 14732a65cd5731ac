// The part of the shared library that is written by hand: one design, its clock, its ports by name, its waveform.
//
// Compiled after the generated header, with ONNXHW_TOP the struct of the top module. All functions are called
// through ctypes; `run`-like ones do many cycles per call.

#include "design.h"
#include "driver.h"

#include <cstring>

using onnxhw_design = cxxrtl_design::ONNXHW_TOP;

onnxhw_sim *onnxhw_create() {
	auto *sim = new onnxhw_sim;
	// The constructor is compiled with the generated code, without optimization: it is long.
	cxxrtl_toplevel toplevel = cxxrtl_design_create();
	sim->top = static_cast<onnxhw_design *>(toplevel->module.get());
	sim->handle = cxxrtl_create(toplevel);
	onnxhw_settle(sim);
	return sim;
}

void onnxhw_destroy(onnxhw_sim *sim) {
	onnxhw_waves_close(sim);
	cxxrtl_destroy(sim->handle);
	delete sim;
}

// Outputs then show the present state and inputs.
void onnxhw_settle(onnxhw_sim *sim) {
	auto *top = static_cast<onnxhw_design *>(sim->top);
	top->p_clk.set(false);
	top->prev_p_clk.set(false);
	cxxrtl_step(sim->handle);
}

// One clock cycle. The netlist is evaluated once, at the edge: outputs that are not registers keep what they showed
// during the cycle until `onnxhw_settle`.
void onnxhw_cycle(onnxhw_sim *sim) {
	auto *top = static_cast<onnxhw_design *>(sim->top);
	if (sim->before_edge)
		sim->before_edge(sim->part);
	if (sim->vcd)
		onnxhw_waves_sample(sim, 0);
	top->p_clk.set(false);
	top->prev_p_clk.set(false);
	top->p_clk.set(true);
	bool converged = top->eval(nullptr);
	top->latch();
	if (!converged)
		cxxrtl_step(sim->handle);
	sim->cycles++;
	if (sim->vcd)
		onnxhw_waves_sample(sim, 1);
}

void onnxhw_step(onnxhw_sim *sim, uint64_t cycles) {
	while (cycles--)
		onnxhw_cycle(sim);
}

uint64_t onnxhw_cycles(onnxhw_sim *sim) {
	return sim->cycles;
}

cxxrtl_object *onnxhw_item(onnxhw_sim *sim, const char *name) {
	size_t parts = 0;
	cxxrtl_object *object = cxxrtl_get_parts(sim->handle, name, &parts);
	return parts == 1 ? object : nullptr;
}

size_t onnxhw_names(onnxhw_sim *sim, char *buffer, size_t size) {
	struct names { char *at; size_t room, need; } all = { buffer, size, 0 };
	cxxrtl_enum(sim->handle, &all, [](void *data, const char *name, cxxrtl_object *, size_t) {
		auto *all = static_cast<names *>(data);
		size_t length = strlen(name) + 1;
		all->need += length;
		if (length <= all->room) {
			memcpy(all->at, name, length);
			all->at[length - 1] = '\n';
			all->at += length;
			all->room -= length;
		}
	});
	return all.need;
}

#ifdef ONNXHW_WAVES

#include <cxxrtl/capi/cxxrtl_capi_vcd.h>

int onnxhw_waves_open(onnxhw_sim *sim, const char *path, uint64_t cycles) {
	onnxhw_waves_close(sim);
	sim->file = fopen(path, "wb");
	if (!sim->file)
		return 0;
	cxxrtl_vcd vcd = cxxrtl_vcd_create();
	cxxrtl_vcd_timescale(vcd, 1, "ns");
	cxxrtl_vcd_add_from_without_memories(vcd, sim->handle);
	sim->vcd = vcd;
	sim->wave_from = sim->cycles;
	sim->wave_cycles = cycles;
	return 1;
}

// Half a cycle: before the edge with the clock low, or after it.
void onnxhw_waves_sample(onnxhw_sim *sim, int half) {
	cxxrtl_vcd vcd = static_cast<cxxrtl_vcd>(sim->vcd);
	if (half == 0) {
		onnxhw_settle(sim);
	} else {
		cxxrtl_step(sim->handle);
	}
	uint64_t time = 10 * (sim->cycles - sim->wave_from) + (half ? 0 : 5);
	cxxrtl_vcd_sample(vcd, time);
	const char *data;
	size_t size;
	do {
		cxxrtl_vcd_read(vcd, &data, &size);
		fwrite(data, 1, size, sim->file);
	} while (size);
	if (sim->cycles - sim->wave_from >= sim->wave_cycles)
		onnxhw_waves_close(sim);
}

void onnxhw_waves_close(onnxhw_sim *sim) {
	if (!sim->vcd)
		return;
	cxxrtl_vcd_destroy(static_cast<cxxrtl_vcd>(sim->vcd));
	fclose(sim->file);
	sim->vcd = nullptr;
	sim->file = nullptr;
}

#else

int onnxhw_waves_open(onnxhw_sim *, const char *, uint64_t) { return 0; }
void onnxhw_waves_sample(onnxhw_sim *, int) {}
void onnxhw_waves_close(onnxhw_sim *) {}

#endif
