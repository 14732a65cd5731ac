// The pins of a device with a camera, driven and sampled at C++ speed, cycle by cycle.
//
// As serial_line.cc, this is compiled with the design around the core (core_part.h stands before it).

#include <vector>

namespace {

const int64_t CYCLE = int64_t(1) << 32;

// Bits of the camera's pins: d (0 to 7), PCLK, HREF, VSYNC.
const unsigned PCLK = 8, HREF = 9, VSYNC = 10;

// The space of the inputs' words (`onnxhw.isa.memory.Space`).
const uint32_t INPUT = 11;

// Bits of the device's pins in a trace.
const uint32_t TX = 1, SIOC = 2, SIOD = 4, RESET_N = 8;

}

struct onnxhw_camera {
	onnxhw_sim *sim;
	uint32_t *pclk, *href, *vsync, *d;
	const uint32_t *tx, *sioc, *siod, *reset_n, *xclk;
	core_part part;
	int64_t phase;
	uint32_t seen;
	uint32_t was_xclk;
	// Cycles, edges of XCLK, and the fewest and most cycles between two of them, since the start.
	uint64_t cycles, edges, last_edge, least, most;
	// Words of the last input that went to the core.
	std::vector<uint32_t> inputs;
};

extern "C" {

// `outside` and `core`: the pointers of `core_ports`, to the ports of this design and to those of the core.
onnxhw_camera *onnxhw_camera_create(
	onnxhw_sim *sim, const core_ports *outside, const core_ports *core, const core_functions *call
) {
	auto output = [&](const char *name) { return onnxhw_item(sim, name)->curr; };
	auto input = [&](const char *name) { return onnxhw_item(sim, name)->next; };
	return new onnxhw_camera{
		sim, input("pclk"), input("href"), input("vsync"), input("d"), output("tx"), output("sioc"), output("siod"),
		output("reset_n"), output("xclk"), {*outside, *core, *call}, 0, ~uint32_t(0), 0, 0, 0, 0, ~uint64_t(0), 0
	};
}

void onnxhw_camera_destroy(onnxhw_camera *camera) {
	delete camera;
}

// Run at most `cycles` cycles; returns how many. The camera shows `count` levels one after the other, each for
// `cycles_per_level`, then none of its pins changes. It ends early when `room` changes of the device's pins have been
// seen: `changes` gets the cycle and the new level of each. `found`: levels that are over, changes, cycles and edges of
// XCLK since the start, the fewest and most cycles between two edges.
uint64_t onnxhw_camera_run(
	onnxhw_camera *camera, uint64_t cycles, double cycles_per_level, const uint16_t *levels, uint64_t count,
	uint64_t *changes, size_t room, uint64_t found[6]
) {
	uint64_t at = 0, done = 0;
	size_t made = 0;
	const int64_t length = int64_t(cycles_per_level * CYCLE);
	while (done < cycles && made < room && (at < count || !count)) {
		if (count) {
			uint32_t level = levels[at];
			*camera->d = level & 0xFF;
			*camera->pclk = level >> PCLK & 1;
			*camera->href = level >> HREF & 1;
			*camera->vsync = level >> VSYNC & 1;
			for (camera->phase += CYCLE; camera->phase >= length && at < count; camera->phase -= length)
				at++;
		}
		core_show(camera->part);
		*camera->part.outside.clk = 0;
		if (!cxxrtl_eval(camera->sim->handle))
			onnxhw_settle(camera->sim);
		uint32_t seen = (*camera->tx & 1 ? TX : 0) | (*camera->sioc & 1 ? SIOC : 0) | (*camera->siod & 1 ? SIOD : 0)
			| (*camera->reset_n & 1 ? RESET_N : 0);
		if (seen != camera->seen) {
			changes[2 * made] = camera->cycles;
			changes[2 * made++ + 1] = camera->seen = seen;
		}
		if ((*camera->xclk & 1) != camera->was_xclk) {
			uint64_t since = camera->cycles - camera->last_edge;
			if (camera->edges++) {
				camera->least = since < camera->least ? since : camera->least;
				camera->most = since > camera->most ? since : camera->most;
			}
			camera->was_xclk = *camera->xclk & 1;
			camera->last_edge = camera->cycles;
		}
		if (*camera->part.outside.we && *camera->part.outside.space == INPUT) {
			if (!*camera->part.outside.addr)
				camera->inputs.clear();
			camera->inputs.push_back(*camera->part.outside.wdata);
		}
		core_cycle(camera->part);
		onnxhw_cycle(camera->sim);
		camera->cycles++;
		done++;
	}
	const uint64_t all[6] = {at, made, camera->cycles, camera->edges, camera->least, camera->most};
	for (int i = 0; i < 6; i++)
		found[i] = all[i];
	return done;
}

// The words of the last input that went to the core; returns how many, of which `out` gets `room` at most.
size_t onnxhw_camera_inputs(onnxhw_camera *camera, uint32_t *out, size_t room) {
	for (size_t at = 0; at < camera->inputs.size() && at < room; at++)
		out[at] = camera->inputs[at];
	return camera->inputs.size();
}

}
