"""The core's Verilog on Icarus, driven by a cocotb testbench."""

from .engine import CocotbEngine
from .run import Outcome, run_tests

__all__ = ["CocotbEngine", "Outcome", "run_tests"]
