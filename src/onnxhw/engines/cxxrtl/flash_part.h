// An SPI flash memory at the pins of a device that reads one: one step per cycle. Compiled with what drives the device's pins.

#include <vector>

#include "driver.h"

namespace {

// A 25-series memory in SPI mode 0 that is asleep at first, as one may be that the configuration has left so. It knows two
// commands, release from power-down and read; its data changes a cycle after the clock has fallen.
struct flash_part {
	std::vector<uint8_t> contents;
	const uint32_t *cs, *sck, *copi;
	uint32_t *cipo;
	bool awake = false, high = false;
	uint32_t bits = 0, heard = 0;
	uint64_t at = 0;

	// `data` may be null: there is no such memory.
	flash_part(onnxhw_sim *sim, const uint8_t *data, size_t size) {
		if (!data)
			return;
		contents.assign(data, data + size);
		auto output = [&](const char *name) { return onnxhw_item(sim, name)->curr; };
		cs = output("flash_cs");
		sck = output("flash_sck");
		copi = output("flash_copi");
		cipo = onnxhw_item(sim, "flash_cipo")->next;
	}

	// In a cycle whose outputs are there, before its clock edge.
	void step() {
		if (contents.empty())
			return;
		bool now = *sck & 1, rises = now && !high, falls = !now && high;
		high = now;
		if (!(*cs & 1)) {
			awake |= bits == 8 && heard == 0xAB;
			bits = heard = 0;
			*cipo = 1;
			return;
		}
		if (rises && bits < 32) {
			heard = heard << 1 | (*copi & 1);
			if (++bits == 32)
				at = 8 * uint64_t(heard & 0xFFFFFF);
		}
		if (falls && bits == 32 && heard >> 24 == 0x03 && awake) {
			uint64_t byte = at / 8 % contents.size();
			*cipo = contents[byte] >> (7 - at % 8) & 1;
			at++;
		}
	}
};

}
