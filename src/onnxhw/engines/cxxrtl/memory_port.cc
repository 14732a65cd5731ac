// The external memory of a core that is simulated alone: one step in each cycle, at the registers of its pads.

#include <memory>

#include "driver.h"
#include "sdram.h"

namespace {

struct memory_part {
	sdram memory;
	const uint32_t *out[10];
	uint32_t *dq;

	memory_part(onnxhw_sim *sim, const sdram_numbers &numbers) : memory(numbers) {
		static const char *const names[] = {"cke", "cs", "ras", "cas", "we", "ba", "a", "dqm", "dq_o", "dq_oe"};
		for (int i = 0; i < 10; i++)
			out[i] = onnxhw_item(sim, (std::string("top pads memory__") + names[i]).c_str())->curr;
		dq = onnxhw_item(sim, "external__dq_i")->next;
	}
	void step() {
		memory.step({*out[0], *out[1], *out[2], *out[3], *out[4], *out[5], *out[6], *out[7], *out[8], *out[9]});
		*dq = memory.dq;
	}
};

memory_part *part_of(onnxhw_sim *sim) {
	return static_cast<memory_part *>(sim->part);
}

}

extern "C" {

void onnxhw_memory_attach(onnxhw_sim *sim, const sdram_numbers *numbers) {
	sim->part = new memory_part(sim, *numbers);
	sim->before_edge = [](void *part) { static_cast<memory_part *>(part)->step(); };
}

void onnxhw_memory_detach(onnxhw_sim *sim) {
	delete part_of(sim);
	sim->part = nullptr;
	sim->before_edge = nullptr;
}

// Columns from `address` on, past the pins and in no time.
void onnxhw_memory_put(onnxhw_sim *sim, uint32_t address, const uint32_t *columns, size_t count) {
	for (size_t i = 0; i < count; i++)
		part_of(sim)->memory.put(address + i, columns[i]);
}

// The same, read; the number of them that hold nothing known.
size_t onnxhw_memory_get(onnxhw_sim *sim, uint32_t address, uint32_t *columns, size_t count) {
	size_t unknown = 0;
	for (size_t i = 0; i < count; i++)
		unknown += !part_of(sim)->memory.get(address + i, columns[i]);
	return unknown;
}

// The first violation, empty if there was none.
const char *onnxhw_memory_message(onnxhw_sim *sim) {
	return part_of(sim)->memory.message;
}

// Rows that were lost, words read that were not known, words read, words written.
void onnxhw_memory_counts(onnxhw_sim *sim, uint64_t found[4]) {
	const sdram &memory = part_of(sim)->memory;
	found[0] = memory.lost;
	found[1] = memory.unknown;
	found[2] = memory.reads;
	found[3] = memory.writes;
}

}
