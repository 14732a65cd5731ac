"""Models of one quantized node, the golden model's result and onnxruntime's."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxhw import golden
from onnxhw.partition import load

Array = npt.NDArray[Any]
MICROSOFT = "com.microsoft"


def code(dtype: Any) -> int:
    """onnx's number of an element type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class Nodes:
    """A model under construction: operands are names of values, arrays (which become initializers) or None."""

    def __init__(self, opset: int = 17, domains: dict[str, int] | None = None) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.opset, self.domains = opset, {MICROSOFT: 1, **(domains or {})}

    def input(self, name: str, dtype: Any, shape: list[int]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, code(dtype), shape))
        return name

    def const(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op_type: str, *operands: Any, domain: str = "", **attributes: Any) -> str:
        names = ["" if x is None else x if isinstance(x, str) else self.const(x) for x in operands]
        output = f"v{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op_type, names, [output], name=f"n{len(self.nodes)}", domain=domain, **attributes)
        )
        return output

    def output(self, name: str, dtype: Any) -> "Nodes":
        self.outputs.append(helper.make_tensor_value_info(name, code(dtype), None))
        return self

    def proto(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "test", self.inputs, self.outputs, self.constants)
        used = {node.domain for node in self.nodes}
        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid(name, version) for name, version in self.domains.items() if name in used]
        return helper.make_model(graph, opset_imports=imports, ir_version=8 if self.opset < 21 else 10)

    def load(self) -> Any:
        return load(self.proto().SerializeToString())

    def golden(self, feeds: dict[str, Array]) -> list[Array]:
        graph = self.load()
        found = golden.host.finish(graph, golden.run(graph, golden.host.prepare(graph, feeds)))
        return [found[value.name] for value in self.outputs]

    def onnxruntime(self, feeds: dict[str, Array], precise: bool = False) -> list[Array]:
        """Its result; `precise` for uint8 activations and int8 weights, from kernels whose sums cannot saturate.

        Without VNNI, onnxruntime adds pairs of such products in 16 bits, which loses sums above 32767.
        `session.x64quantprecision` makes it turn int8 weights into uint8 ones first; that is one of its
        optimisations, so these are on. For int8 activations the option leads to kernels that do not exist.
        """
        ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install onnxhw[ort])")
        options = ort.SessionOptions()
        if precise:
            options.add_session_config_entry("session.x64quantprecision", "1")
        else:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(self.proto().SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run([value.name for value in self.outputs], feeds))

    def check(self, feeds: dict[str, Array], precise: bool = False) -> None:
        """Golden equals onnxruntime in every element, type and shape."""
        for ours, theirs in zip(self.golden(feeds), self.onnxruntime(feeds, precise), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def nodes() -> type[Nodes]:
    return Nodes
