// The external memory at the pins of a device that has one: one step per cycle. Compiled with what drives the device's pins.

#include <memory>

#include "driver.h"
#include "sdram.h"

namespace {

// Pins and the memory behind them; none if the design has no such pins.
struct sdram_part {
	std::unique_ptr<sdram> memory;
	const uint32_t *out[10];
	uint32_t *dq;

	// `numbers` may be null.
	sdram_part(onnxhw_sim *sim, const sdram_numbers *numbers) {
		static const char *const names[] = {"cke", "cs", "ras", "cas", "we", "ba", "a", "dqm", "dq_o", "dq_oe"};
		if (!numbers)
			return;
		memory.reset(new sdram(*numbers));
		for (int i = 0; i < 10; i++)
			out[i] = onnxhw_item(sim, (std::string("external__") + names[i]).c_str())->curr;
		dq = onnxhw_item(sim, "external__dq_i")->next;
	}

	// In a cycle whose outputs are there, before its clock edge.
	void step() {
		if (!memory)
			return;
		memory->step({*out[0], *out[1], *out[2], *out[3], *out[4], *out[5], *out[6], *out[7], *out[8], *out[9]});
		*dq = memory->dq;
	}
};

}
