"""Rewrites of the integer graph that keep its meaning, and the graphs worth scheduling."""

from .variants import variants

__all__ = ["variants"]
