// The core beside the design around it: each clock cycle both see each other's outputs of that cycle, as if they were one
// design. A core at rest is not evaluated: see `core_cycle`. Compiled with what drives the device's pins.

#include "driver.h"

namespace {

// Cycles without access and run after which the core's state is looked at, and again if it still changes.
const unsigned REST = 64;

// Inputs of the core, and registers that are its outputs.
struct core_ports {
	uint32_t *clk, *space, *addr, *wdata, *wstrb, *we, *re;
	const uint32_t *rdata, *rvalid, *running, *input_free, *waiting, *busy, *over;
};

// The core: its simulation and the functions of its library.
struct core_functions {
	onnxhw_sim *sim;
	void (*cycle)(onnxhw_sim *);
	int (*eval)(cxxrtl_handle), (*commit)(cxxrtl_handle);
	void (*settle)(onnxhw_sim *);
	// Of a core with external memory, else null: pairs of words, from and to, of what the core shows to its controller and a
	// null; then of what it sees, and a null.
	uint32_t **wires;
};

// Copy the words of a list; its end.
uint32_t **core_copy(uint32_t **pair) {
	for (; *pair; pair += 2)
		*pair[1] = *pair[0];
	return pair + 1;
}

// The ports of the design around the core and of the core itself; cycles since the core was last accessed or ran;
// whether its state cannot change by itself; cycles in which it was not evaluated.
struct core_part {
	core_ports outside, core;
	core_functions call;
	unsigned unused;
	bool asleep;
	uint64_t slept;
};

// The design around the core sees the core's outputs of this cycle.
void core_show(core_part &part) {
	if (part.call.wires) {
		// These are no registers. None of them depends on what the core sees in this cycle.
		if (!part.asleep)
			part.call.settle(part.call.sim);
		core_copy(part.call.wires);
	}
	*const_cast<uint32_t *>(part.outside.rdata) = *part.core.rdata;
	*const_cast<uint32_t *>(part.outside.rvalid) = *part.core.rvalid;
	*const_cast<uint32_t *>(part.outside.running) = *part.core.running;
	*const_cast<uint32_t *>(part.outside.input_free) = *part.core.input_free;
	*const_cast<uint32_t *>(part.outside.waiting) = *part.core.waiting;
	*const_cast<uint32_t *>(part.outside.busy) = *part.core.busy;
	*const_cast<uint32_t *>(part.outside.over) = *part.core.over;
}

// One clock cycle of the core. Its address and data inputs only count in a cycle of an access, and keep their
// values in all others. Without an access or a run its state soon repeats itself; a cycle that has changed nothing
// would be followed by equal ones, which are left out until the next access.
void core_cycle(core_part &part) {
	core_ports &to = part.core, &from = part.outside;
	bool running = *from.running;
	bool access = *from.we || *from.re;
	*to.we = *from.we;
	*to.re = *from.re;
	if (part.call.wires) {
		uint32_t **pair = part.call.wires;
		while (*pair)
			pair += 2;
		core_copy(pair + 1);
	}
	if (access) {
		*to.space = *from.space;
		*to.addr = *from.addr;
		*to.wdata = *from.wdata;
		*to.wstrb = *from.wstrb;
	}
	if (access || running) {
		part.unused = 0;
		part.asleep = false;
	} else if (part.asleep) {
		part.slept++;
		return;
	}
	if (++part.unused % REST) {
		part.call.cycle(part.call.sim);
		return;
	}
	cxxrtl_handle handle = part.call.sim->handle;
	*to.clk = 0;
	part.call.eval(handle);
	part.call.commit(handle);
	*to.clk = 1;
	part.call.eval(handle);
	part.asleep = !part.call.commit(handle);
}

}
