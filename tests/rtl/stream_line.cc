// Streams of bytes into and out of a compiled component (link_bench.py).

#include "driver.h"

// Run `cycles` cycles and give the first of `count` waiting items of `in` as soon as they are taken; what comes is put
// into `out`. Returns how many were taken; `made`: how many came.
extern "C" size_t stream_line_run(
	onnxhw_sim *sim, uint64_t cycles, const uint16_t *in, size_t count, uint8_t *out, size_t *made
) {
	auto input = [&](const char *name) { return onnxhw_item(sim, name)->next; };
	auto output = [&](const char *name) { return onnxhw_item(sim, name)->curr; };
	uint32_t *item = input("i__payload"), *offered = input("i__valid"), *ready = input("o__ready");
	const uint32_t *taken = output("i__ready"), *byte = output("o__payload"), *valid = output("o__valid");
	size_t used = 0;
	*made = 0;
	*ready = 1;
	while (cycles--) {
		*offered = used < count;
		*item = used < count ? in[used] : 0;
		onnxhw_settle(sim);
		if (*valid)
			out[(*made)++] = *byte;
		used += *offered && *taken;
		onnxhw_cycle(sim);
	}
	return used;
}
