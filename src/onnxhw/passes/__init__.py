"""Rewrites of the integer graph that keep its meaning, and the graphs worth scheduling (`variants`)."""
