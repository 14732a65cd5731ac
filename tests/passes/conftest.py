"""The networks of the scheduler's tests."""

from ..sched.conftest import configure, hw, new_net

__all__ = ["configure", "hw", "new_net"]
