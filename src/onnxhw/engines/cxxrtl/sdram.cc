// `sdram` as a library of its own: a whole trace of pins at a time.

#include "sdram.h"

extern "C" {

sdram *onnxhw_sdram_create(const sdram_numbers *numbers) {
	return new sdram(*numbers);
}

void onnxhw_sdram_destroy(sdram *memory) {
	delete memory;
}

// `count` cycles; `dq` gets what the pins show, `known` whether the memory drives something that was written. Returns how many
// cycles have passed: fewer if a rule was violated, the cycle in which it was counted.
uint64_t onnxhw_sdram_run(sdram *memory, const sdram_pins *pins, uint64_t count, uint32_t *dq, uint8_t *known) {
	for (uint64_t i = 0; i < count; i++) {
		memory->step(pins[i]);
		dq[i] = memory->dq;
		known[i] = memory->known;
		if (memory->violated)
			return i + 1;
	}
	return count;
}

// The first violation, empty if there was none.
const char *onnxhw_sdram_message(sdram *memory) {
	return memory->message;
}

// Rows that were lost, words read that were not known, words read, words written.
void onnxhw_sdram_counts(sdram *memory, uint64_t found[4]) {
	found[0] = memory->lost;
	found[1] = memory->unknown;
	found[2] = memory->reads;
	found[3] = memory->writes;
}

}
