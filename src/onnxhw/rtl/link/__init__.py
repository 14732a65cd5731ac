"""The device's end of the link: from bytes on the serial line to accesses of the core's host port."""
