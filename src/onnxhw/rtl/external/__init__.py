"""The external memory: its controller, its pads, and how the host reaches it."""
