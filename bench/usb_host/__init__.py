"""A USB host at the pins of a simulated device: what tests and benches drive `--link usb` with."""
