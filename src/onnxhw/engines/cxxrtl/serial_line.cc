// A device's serial pins, driven and sampled at C++ speed: bytes in and out, 8N1, cycle by cycle.
//
// This is compiled with the design around the core (`RtlDevice`); the core is another design, in another library,
// and comes as pointers (core_part.h, which stands before this).

namespace {

// Times are in cycles with 32 fraction bits, so that any baud rate is met exactly on average.
const int64_t CYCLE = int64_t(1) << 32;

}

struct onnxhw_line {
	onnxhw_sim *sim;
	uint32_t *rx;
	const uint32_t *tx, *running, *busy;
	core_part part;
	sdram_part external;
	flash_part flash;
	int64_t bit;
	// Towards the device: the bits that are left of a byte, the next one first, and the time left of the present one.
	uint32_t sending;
	int bits_to_send;
	int64_t until_edge;
	// From the device: what has been sampled; `bits_to_sample` counts the stop bit, 0 between bytes.
	uint32_t sampled;
	int bits_to_sample;
	int64_t until_sample;
	bool wait_for_high;
	// Cycles since a pin or the device was last busy; stop bits that were low.
	uint64_t quiet, errors;
};

extern "C" {

// `outside` and `core`: the pointers of `core_ports`, to the ports of this design and to those of the core. `numbers`: of the external
// memory, null if there is none; `flash` is what the SPI flash holds, null likewise.
onnxhw_line *onnxhw_line_create(
	onnxhw_sim *sim, double cycles_per_bit, const core_ports *outside, const core_ports *core, const core_functions *call,
	const sdram_numbers *numbers, const uint8_t *flash, size_t flash_size
) {
	auto output = [&](const char *name) { return onnxhw_item(sim, name)->curr; };
	auto *line = new onnxhw_line{
		sim, onnxhw_item(sim, "rx")->next, output("tx"), output("running"), output("busy"), {*outside, *core, *call},
		{sim, numbers}, {sim, flash, flash_size}, int64_t(cycles_per_bit * CYCLE)
	};
	*line->rx = 1;
	return line;
}

void onnxhw_line_destroy(onnxhw_line *line) {
	delete line;
}

// The speed at which the host sends and samples from the next bit on.
void onnxhw_line_speed(onnxhw_line *line, double cycles_per_bit) {
	line->bit = int64_t(cycles_per_bit * CYCLE);
}

// Run at most `cycles` cycles; returns how many. It ends early when `room` bytes have been received, or in
// the cycle in which nothing has happened for `patience` cycles. `found`: bytes taken from `in`, bytes put
// into `out`, cycles since anything happened, low stop bits since the start, cycles that the core has slept.
// If there is a `trace`, it gets tx (bit 0) and rx (bit 1) of each cycle.
uint64_t onnxhw_line_run(
	onnxhw_line *line, uint64_t cycles, uint64_t patience,
	const uint8_t *in, size_t count, uint8_t *out, size_t room, uint64_t found[5], uint8_t *trace
) {
	size_t taken = 0, made = 0;
	uint64_t done = 0;
	while (done < cycles && made < room) {
		if (line->bits_to_send == 0) {
			if (taken < count) {
				line->sending = uint32_t(in[taken++]) << 1 | 1u << 9;
				line->bits_to_send = 10;
				line->until_edge += line->bit;
			} else {
				line->until_edge = 0;
			}
		}
		*line->rx = line->bits_to_send ? line->sending & 1 : 1;
		core_show(line->part);
		// Outputs of this cycle; `onnxhw_settle`, which looks whether anything has changed, takes longer.
		*line->part.outside.clk = 0;
		if (!cxxrtl_eval(line->sim->handle))
			onnxhw_settle(line->sim);
		line->external.step();
		line->flash.step();
		bool level = *line->tx & 1;
		bool active = line->bits_to_send || line->bits_to_sample || *line->running || *line->busy;
		core_cycle(line->part);
		onnxhw_cycle(line->sim);
		if (trace)
			trace[done] = level | (*line->rx & 1) << 1;
		done++;
		if (line->bits_to_send && (line->until_edge -= CYCLE) < CYCLE / 2) {
			line->sending >>= 1;
			if (--line->bits_to_send)
				line->until_edge += line->bit;
		}
		if (line->bits_to_sample == 0) {
			line->wait_for_high &= !level;
			if (!level && !line->wait_for_high) {
				active = true;
				line->bits_to_sample = 9;
				line->until_sample = line->bit + line->bit / 2;
			}
		} else if ((line->until_sample -= CYCLE) < CYCLE / 2) {
			line->until_sample += line->bit;
			if (--line->bits_to_sample) {
				line->sampled = line->sampled >> 1 | (level ? 0x80 : 0);
			} else {
				out[made++] = line->sampled & 0xff;
				line->wait_for_high = !level;
				line->errors += !level;
			}
		}
		line->quiet = active ? 0 : line->quiet + 1;
		if (line->quiet == patience || (line->external.memory && line->external.memory->violated))
			break;
	}
	found[0] = taken;
	found[1] = made;
	found[2] = line->quiet;
	found[3] = line->errors;
	found[4] = line->part.slept;
	return done;
}

// The first rule of the external memory that was violated, empty if none was; null without one.
const char *onnxhw_line_violation(onnxhw_line *line) {
	return line->external.memory ? line->external.memory->message : nullptr;
}

}
