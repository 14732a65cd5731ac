"""The core's Verilog on Icarus, driven by a cocotb testbench."""
