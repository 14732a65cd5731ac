"""From an ONNX file to integer graphs, and to what the host does beside them.

read         file or bytes -> PartitionedModel: parts for hardware and host, and a row per node
prepare      the same up to what depends on which nodes shall run on the host, for several placements
load         file or bytes -> ir.graph.Graph of a model that runs on the hardware as a whole

read_model   file or bytes -> checked onnx.ModelProto           (load.py, reading/)
specialise   static shapes                                      (shapes.py)
convert      nodes -> IR operations and host nodes              (convert.py, handlers.py, ops/, quant/)
partition    -> stages that alternate between host and hardware (partition.py, hostparts.py)
placement    a row per node                                     (placement.py)
batch        -> whether samples are independent                 (batch.py, mixing.py, persample.py)
"""

from ..convert.blockers import Blocker, UnsupportedNodesError
from .partitioned import PartitionedModel, Placed, refuse, require_hardware
from .pipeline import load, read

__all__ = [
    "Blocker",
    "PartitionedModel",
    "Placed",
    "UnsupportedNodesError",
    "load",
    "read",
    "refuse",
    "require_hardware",
]
