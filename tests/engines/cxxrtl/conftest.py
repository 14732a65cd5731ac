"""The smallest core of the simulated board's tests."""

from ...serve.conftest import tiny, tiny_program

__all__ = ["tiny", "tiny_program"]
