"""What a session tells about its model, as onnxruntime's classes have it."""

from collections.abc import Mapping

import onnx

from ..ir.parts import Dim, ValueInfo
from ..onnxmodel.open_shapes import batch_variable, has_open, open_shapes
from ..onnxmodel.prepared import Source
from ..onnxmodel.read import read_model
from ..ort_api import ModelMetadata, NodeArg, tensor_type, type_text
from ..ort_api.values import NO_VERSION
from ..program.parts import Program
from .executor_names import compiled, saved_model
from .inputs import sizes_of_every_run


class ModelDescription:
    """Types, sizes and metadata of a model, which is read when the first of them is asked for.

    `source`: what a session is made from.
    """

    def __init__(self, source: Source | Program) -> None:
        self._source = source
        self._read: onnx.ModelProto | None = None
        self._open: dict[str, list[Dim]] | None = None

    def declared_inputs(self) -> list[onnx.ValueInfoProto]:
        """The inputs as the model declares them; none for a compiled program without a copy of it."""
        model = self._model()
        return [] if model is None else list(model.graph.input)

    def metadata(self, name: str) -> ModelMetadata:
        """What the model says of itself; a compiled program without a copy of it has a `name`."""
        model = self._model()
        if model is None:
            return ModelMetadata(graph_name=name)
        return ModelMetadata(
            model.producer_name, model.graph.name, model.domain, model.doc_string, model.graph.doc_string,
            model.model_version if model.HasField("model_version") else NO_VERSION,
            {entry.key: entry.value for entry in model.metadata_props},
        )  # fmt: skip

    def of_value(
        self, value: ValueInfo, program: Program, shapes: Mapping[str, int] | None, *, anew: bool
    ) -> NodeArg:
        """An input or output with its type as the model declares it, and the sizes that every run has; with `anew` the
        model is placed for other sizes, those that are not among `shapes`, where a run has them."""
        model = self._model()
        known = [*model.graph.input, *model.graph.output] if model is not None else []
        declared = next((one.type for one in known if one.name == value.name), onnx.TypeProto())
        if self._open is None:
            self._open = open_shapes(model, shapes) if model is not None and anew and has_open(model) else {}
        batch, shape = program.batch, self._open.get(value.name)
        if shape is None:
            names = sorted(batch.inputs) if batch is not None and model is not None else []
            variables = {batch_variable(model, name) for name in names} if model is not None else set()
            shape = sizes_of_every_run(value, batch, variables.pop() if len(variables) == 1 else None)
        return NodeArg(value.name, type_text(declared) or tensor_type(value.dtype), shape, value.dtype)

    def _model(self) -> onnx.ModelProto | None:
        """The model as its file has it; None for a compiled program without a copy of it."""
        if self._read is None:
            if isinstance(self._source, Program):
                return None
            file, source = compiled(self._source), self._source
            source = source.SerializeToString() if isinstance(source, onnx.ModelProto) else source
            self._read = read_model(source) if file is None else saved_model(file.parent)
        return self._read
