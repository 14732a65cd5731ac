"""Which part of a model runs where: stages of hardware and host in turn, a row per node, and the parts.

read         file or bytes -> PartitionedModel: parts for hardware and host, and a row per node   (pipeline.py)
load         file or bytes -> ir.graph.Graph of a model that runs on the hardware as a whole      (pipeline.py)
stages       the stages, and the integer graph of each       (stages.py)
host_parts   the ONNX models of the host                     (host_parts.py)
node_report  a row per node                                  (node_report.py, refusals.py, trials.py)
untrusted    reading and placing in a child process          (untrusted.py)
"""

from .partitioned import NodePlacement, PartitionedModel, refuse, require_hardware
from .pipeline import load, read

__all__ = ["NodePlacement", "PartitionedModel", "load", "read", "refuse", "require_hardware"]
