// Functions of the driver; see driver.cc. A design's own driver (such as host_port.cc) includes this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <cxxrtl/capi/cxxrtl_capi.h>

struct onnxhw_sim {
	cxxrtl_handle handle = nullptr;
	void *top = nullptr;
	uint64_t cycles = 0;
	void *vcd = nullptr;
	FILE *file = nullptr;
	uint64_t wave_from = 0, wave_cycles = 0;
	// What else belongs to the design: called in each cycle before its clock edge.
	void (*before_edge)(void *part) = nullptr;
	void *part = nullptr;
};

extern "C" {
onnxhw_sim *onnxhw_create();
void onnxhw_destroy(onnxhw_sim *sim);
void onnxhw_settle(onnxhw_sim *sim);
void onnxhw_cycle(onnxhw_sim *sim);
void onnxhw_step(onnxhw_sim *sim, uint64_t cycles);
uint64_t onnxhw_cycles(onnxhw_sim *sim);
cxxrtl_object *onnxhw_item(onnxhw_sim *sim, const char *name);
size_t onnxhw_names(onnxhw_sim *sim, char *buffer, size_t size);
int onnxhw_waves_open(onnxhw_sim *sim, const char *path, uint64_t cycles);
void onnxhw_waves_sample(onnxhw_sim *sim, int half);
void onnxhw_waves_close(onnxhw_sim *sim);
}
