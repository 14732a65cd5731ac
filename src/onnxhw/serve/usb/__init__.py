"""A USB host at the pins of a simulated device: wire, transactions and frames, enumeration, bytes of a serial port."""
