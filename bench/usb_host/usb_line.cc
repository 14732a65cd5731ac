// A device's USB pins, driven and sampled at C++ speed, tick by tick of its 48 MHz clock.
//
// As serial_line.cc, this is compiled with the design around the core (core_part.h and sdram_part.h stand before it). That design has three
// clocks: "usb_io", every tick; "usb", every fourth, with edges at the same times; "clk", the core's, of any frequency.

#include "design.h"

using onnxhw_design = cxxrtl_design::ONNXHW_TOP;

namespace {

const int64_t CYCLE = int64_t(1) << 32;

// Ticks after which an answer that has not ended is cut: twice the longest packet.
const uint64_t ANSWER = 6000;

// Bits of a level on the bus, and of what a tick leaves in the trace.
const uint8_t DP = 1, DM = 2, DRIVEN = 4, PULLUP = 8, BUSY = 16;

}

struct onnxhw_usb {
	onnxhw_sim *sim;
	onnxhw_design *top;
	uint32_t *dp_i, *dm_i;
	const uint32_t *dp_o, *dm_o, *oe, *pullup, *running, *busy;
	core_part part;
	sdram_part external;
	// Cycles of the core per tick and the part of a cycle that has passed, with 32 fraction bits.
	int64_t cycles_per_tick, phase;
	uint64_t ticks, cycles;
};

namespace {

// Registers of the domains whose clock rises take their next values.
void edge(onnxhw_usb *usb, bool core, bool fast, bool slow) {
	onnxhw_design *top = usb->top;
	top->p_clk.set(false);
	top->prev_p_clk.set(false);
	top->p_usb__io__clk.set(false);
	top->prev_p_usb__io__clk.set(false);
	top->p_usb__clk.set(false);
	top->prev_p_usb__clk.set(false);
	top->p_clk.set(core);
	top->p_usb__io__clk.set(fast);
	top->p_usb__clk.set(slow);
	bool converged = top->eval(nullptr);
	top->latch();
	if (!converged)
		cxxrtl_step(usb->sim->handle);
}

// One cycle of the core's clock, in the core and in the design around it.
void cycle(onnxhw_usb *usb) {
	core_show(usb->part);
	// The ports towards the core show this cycle.
	edge(usb, false, false, false);
	usb->external.step();
	core_cycle(usb->part);
	edge(usb, true, false, false);
	usb->cycles++;
}

}

extern "C" {

// `numbers`: of the external memory, null if there is none.
onnxhw_usb *onnxhw_usb_create(
	onnxhw_sim *sim, double cycles_per_tick, const core_ports *outside, const core_ports *core, const core_functions *call,
	const sdram_numbers *numbers
) {
	auto output = [&](const char *name) { return onnxhw_item(sim, name)->curr; };
	auto input = [&](const char *name) { return onnxhw_item(sim, name)->next; };
	return new onnxhw_usb{
		sim, static_cast<onnxhw_design *>(sim->top), input("dp_i"), input("dm_i"), output("dp_o"), output("dm_o"),
		output("oe"), output("pullup"), output("running"), output("busy"), {*outside, *core, *call}, {sim, numbers},
		int64_t(cycles_per_tick * CYCLE)
	};
}

void onnxhw_usb_destroy(onnxhw_usb *usb) {
	delete usb;
}

// The host drives `count` levels, one per tick (DP, DM; not DRIVEN: nothing), then for up to `ticks` ticks the level `rest`.
// With `listen` a device that begins to drive within these ticks is heard to its end (and one tick on), at most ANSWER ticks in all
// behind the levels. Returns how many ticks have passed; `trace`, of count + max(ticks, ANSWER) bytes, gets the level of the bus in
// each, with DRIVEN where the device drives it.
uint64_t onnxhw_usb_run(
	onnxhw_usb *usb, const uint8_t *levels, uint64_t count, uint64_t ticks, uint8_t rest, bool listen, uint8_t *trace
) {
	uint64_t done = 0;
	bool heard = false;
	while (done < count + (heard ? ANSWER : ticks)) {
		uint8_t host = done < count ? levels[done] : rest;
		bool driven = *usb->oe & 1, pullup = *usb->pullup & 1;
		uint8_t level = driven ? (*usb->dp_o & 1 ? DP : 0) | (*usb->dm_o & 1 ? DM : 0)
			: host & DRIVEN ? host & (DP | DM) : pullup ? DP : 0;
		*usb->dp_i = level & DP ? 1 : 0;
		*usb->dm_i = level & DM ? 1 : 0;
		edge(usb, false, true, usb->ticks % 4 == 0);
		if (trace)
			trace[done] = level | (driven ? DRIVEN : 0) | (pullup ? PULLUP : 0) | (*usb->running & 1 || *usb->busy & 1 ? BUSY : 0);
		done++;
		usb->ticks++;
		for (usb->phase += usb->cycles_per_tick; usb->phase >= CYCLE; usb->phase -= CYCLE)
			cycle(usb);
		if (heard && !driven)
			break;
		heard |= listen && done > count && driven;
	}
	return done;
}

// The first rule of the external memory that was violated, empty if none was; null without one.
const char *onnxhw_usb_violation(onnxhw_usb *usb) {
	return usb->external.memory ? usb->external.memory->message : nullptr;
}

uint64_t onnxhw_usb_ticks(onnxhw_usb *usb) {
	return usb->ticks;
}

uint64_t onnxhw_usb_cycles(onnxhw_usb *usb) {
	return usb->cycles;
}

}
