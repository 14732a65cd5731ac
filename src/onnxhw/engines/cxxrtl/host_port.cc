// The host port of the core, driven at C++ speed.

#include "driver.h"

namespace {

// Longer than the pipeline of the port: after so many cycles an access has had its effect.
const int PIPELINE = 16;

// The space of words of input, which the core takes as fast as it puts them into their places.
const uint32_t INPUT = 11;

// Longer than it takes for a word, with all the padding that may come before it: a core that needs longer is stuck.
const unsigned PATIENCE = 1 << 18;

struct host_port {
	uint32_t *space, *address, *data, *strobe, *write, *read;
	const uint32_t *answer, *valid, *running, *waiting, *busy;

	explicit host_port(onnxhw_sim *sim) {
		auto input = [&](const char *name) { return onnxhw_item(sim, name)->next; };
		auto output = [&](const char *name) { return onnxhw_item(sim, name)->curr; };
		space = input("host_space");
		address = input("host_addr");
		data = input("host_wdata");
		strobe = input("host_wstrb");
		write = input("host_we");
		read = input("host_re");
		answer = output("host_rdata");
		valid = output("host_rvalid");
		running = output("running");
		waiting = output("host_waiting");
		busy = output("input_busy");
	}

	// Run while an output is high.
	void wait_for(onnxhw_sim *sim, const uint32_t *high) {
		for (unsigned cycle = 0; cycle < PATIENCE; cycle++) {
			onnxhw_settle(sim);
			if (!*high)
				return;
			onnxhw_cycle(sim);
		}
	}
};

}

extern "C" {

int onnxhw_host_start(onnxhw_sim *sim);

// Write words to consecutive addresses, one per cycle, or fewer of INPUT, and wait until they are in their places.
void onnxhw_host_write(onnxhw_sim *sim, uint32_t space, uint32_t address, const uint32_t *words, size_t count) {
	host_port port(sim);
	*port.space = space;
	*port.strobe = 15;
	for (size_t i = 0; i < count; i++) {
		*port.write = 0;
		if (space == INPUT)
			port.wait_for(sim, port.waiting);
		*port.write = 1;
		*port.address = address + i;
		*port.data = words[i];
		onnxhw_cycle(sim);
	}
	*port.write = 0;
	*port.strobe = 0;
	onnxhw_step(sim, PIPELINE);
	if (space == INPUT)
		port.wait_for(sim, port.busy);
}

// Read words from consecutive addresses, pipelined; the number of words that were answered.
size_t onnxhw_host_read(onnxhw_sim *sim, uint32_t space, uint32_t address, uint32_t *words, size_t count) {
	host_port port(sim);
	size_t answered = 0;
	*port.space = space;
	for (size_t i = 0; i < count + 4 * PIPELINE && answered < count; i++) {
		*port.read = i < count;
		*port.address = address + (i < count ? i : 0);
		onnxhw_settle(sim);
		if (*port.valid)
			words[answered++] = *port.answer;
		onnxhw_cycle(sim);
	}
	*port.read = 0;
	return answered;
}

// Do with the last words of input, from address `after` on, what the loader does with a frame whose CRC is right, cycle by
// cycle from its write of the register LATENCY on, and return as soon as the run is under way; 0 if it does not start.
int onnxhw_host_infer(onnxhw_sim *sim, uint32_t latency, uint32_t after, const uint32_t *words, size_t count) {
	host_port port(sim);
	auto write = [&](uint32_t space, uint32_t address, uint32_t data) {
		*port.space = space;
		*port.address = address;
		*port.data = data;
		*port.strobe = 15;
		*port.write = 1;
	};
	size_t read = 0, written = 0;
	bool arrives = false, coming = false, busy = true;  // the loader hears of `input_busy` a cycle late
	for (unsigned cycle = 0, since = 0; cycle < PATIENCE + count; cycle++) {
		*port.write = 0;
		if (cycle == 0)
			write(0, latency, 0);
		if (arrives) {
			write(INPUT, after + written, words[written]);
			written++;
		}
		onnxhw_settle(sim);
		bool reads = read < count && !*port.waiting;
		// Eight cycles after the last word was read, or later, nothing is left to be done.
		if (read == count && ++since >= 8 && !busy) {
			*port.write = 0;
			onnxhw_cycle(sim);
			return onnxhw_host_start(sim);
		}
		read += reads;
		busy = *port.busy;
		onnxhw_cycle(sim);
		arrives = coming;
		coming = reads;
	}
	return 0;
}

// Write 1 to register 0 (RUN) of space 0 and return as soon as the run is under way; 0 if it does not start.
int onnxhw_host_start(onnxhw_sim *sim) {
	host_port port(sim);
	*port.space = 0;
	*port.address = 0;
	*port.data = 1;
	*port.strobe = 15;
	*port.write = 1;
	onnxhw_cycle(sim);
	*port.write = 0;
	*port.strobe = 0;
	for (int i = 0; i < PIPELINE; i++) {
		onnxhw_settle(sim);
		if (*port.running)
			return 1;
		onnxhw_cycle(sim);
	}
	return 0;
}

// Run at most `limit` cycles, until `running` is low (returns 1) or, if `counter` is given, until it has reached
// `target` (returns 2); 0 if neither.
int onnxhw_host_run(onnxhw_sim *sim, uint64_t limit, const uint32_t *counter, uint32_t target) {
	host_port port(sim);
	for (uint64_t i = 0; i < limit; i++) {
		if (counter && *counter >= target)
			return 2;
		onnxhw_cycle(sim);
		if (!*port.running) {
			onnxhw_settle(sim);
			if (!*port.running)
				return counter && *counter >= target ? 2 : 1;
		}
	}
	return 0;
}

}
