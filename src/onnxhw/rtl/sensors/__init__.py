"""Devices that take their inputs from a sensor, without a host.

capture     pins of a camera to pixels
average     pixels of a frame to averages of boxes
quantize    averages to words of the input's stream
session     the settings, and one inference after the other on the core
report      the answer as a line of text
sccb        the camera's registers
device      all of it, with plain pins
top         with the pins of a board
"""
