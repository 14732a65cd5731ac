"""Rewrites of the integer graph that keep its meaning, and the graphs worth scheduling."""

from .variants import choose, variants

__all__ = ["choose", "variants"]
