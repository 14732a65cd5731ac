"""The messages of `program.ohw`, declared once; ``program.proto`` is printed from this declaration.

The classes are built from descriptors at import time, so they depend on no generated code and work
with every protobuf runtime. ``python -m onnxhw.program.schema > src/onnxhw/program/program.proto`` renews
the text, for readers in other languages; a test checks that it is fresh.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "onnxhw"

# message -> (what it is, [(number, label, type, name, meaning)]); a type that is no scalar is a message.
MESSAGES: dict[str, tuple[str, list[tuple[int, str, str, str, str]]]] = {
    "File": (
        "The file. Its bytes are a function of the payload: other bytes are a damaged file.",
        [
            (1, "", "string", "magic", "'onnxhw program'"),
            (2, "", "uint32", "format", "7"),
            (3, "", "bytes", "sha256", "of the payload"),
            (4, "", "bytes", "payload", "a serialized Program"),
        ],
    ),
    "Program": (
        "A compiled model.",
        [
            (1, "", "string", "name", "name of the model"),
            (2, "repeated", "Value", "inputs", ""),
            (3, "repeated", "Value", "outputs", ""),
            (4, "repeated", "Part", "parts", "in execution order; values pass between them by name"),
            (5, "", "Batch", "batch", "of a model that takes several samples"),
        ],
    ),
    "Batch": (
        "What a model says of its batch.",
        [
            (1, "", "uint32", "size", "samples of every call; 0: as many as there are"),
            (2, "repeated", "string", "inputs", "those whose first dimension counts samples"),
            (3, "repeated", "string", "outputs", "the same; what else there is, is the same for all samples"),
            (4, "", "string", "mixing", "where samples may meet; empty: they are independent"),
        ],
    ),
    "Part": (
        "A device program, a model for the host, or operations for the host.",
        [
            (1, "", "DeviceProgram", "device", "the accelerator's part"),
            (2, "", "bytes", "host", "the host's part: a serialized onnx.ModelProto"),
            (3, "repeated", "string", "inputs", "of a host part: names of the values it reads"),
            (4, "repeated", "string", "outputs", "of a host part: names of the values it gives"),
            (5, "repeated", "string", "nodes", "of a host part: its nodes"),
            (6, "", "string", "golden", "operations that the host computes: onnxhw.ir.text with constants"),
        ],
    ),
    "Value": (
        "An input or output of the model.",
        [
            (1, "", "string", "name", ""),
            (2, "", "string", "shape", "JSON: a list of numbers, symbols and nulls, or null"),
            (3, "", "string", "dtype", "numpy's name, or empty for what is no tensor"),
            (4, "", "bool", "optional", "an input with a default value"),
            (5, "", "string", "elements", "of what holds tensors: the shape of each, as JSON; empty is null"),
        ],
    ),
    "DeviceProgram": (
        "A hardware part: what the device is loaded with, and what its host must know.",
        [
            (1, "", "string", "config", "HwConfig.to_json()"),
            (2, "", "string", "fingerprint", "HwConfig.fingerprint of that configuration"),
            (3, "", "string", "model", "name of the model"),
            (4, "repeated", "Code", "code", "one per unit"),
            (5, "", "bytes", "weights", "weight words from address 0, each k * C int8"),
            (6, "", "bytes", "params", "parameter rows from address 0, each Q entries of 64 bits, little endian"),
            (7, "", "bytes", "tables", "256 int8 each, for the operands -128 .. 127"),
            (8, "repeated", "Entry", "tensors", "the tensor table"),
            (9, "repeated", "Port", "inputs", ""),
            (10, "repeated", "Port", "outputs", ""),
            (11, "repeated", "Layer", "layers", ""),
            (12, "", "uint64", "cycles", "predicted, exact cycles of a run"),
            (13, "", "uint64", "macs", "multiply-accumulates that a run executes"),
            (14, "", "uint32", "free_array", "no input is touched once this many array instructions are complete"),
            (15, "", "uint32", "free_vector", "and this many vector instructions; both 0: not before outputs are read"),
            (16, "", "uint64", "nominal", "multiply-accumulates of the model"),
            (17, "", "bytes", "external", "32-bit words of external memory from address 0, little endian"),
            (18, "", "uint32", "segments", "parts that run one after the other; 0: on the chip alone"),
            (19, "repeated", "State", "states", "tensors that stay in external memory from run to run"),
        ],
    ),
    "State": (
        "What a run makes as one tensor, and the next one finds as another.",
        [
            (1, "", "string", "output", "the model's name of what is made"),
            (2, "", "string", "input", "the model's name of what is found"),
            (3, "", "string", "made", "a tensor of the table"),
            (4, "", "string", "read", "a tensor of the table"),
            (5, "", "bytes", "initial", "what the first run finds: int8, channels, rows, columns"),
        ],
    ),
    "Code": (
        "The instructions of one unit.",
        [
            (1, "", "string", "unit", "'load', 'array', 'depthwise', 'vector' or 'move'"),
            (2, "", "uint32", "count", "number of instructions"),
            (3, "", "bytes", "words", "their microcode, 32-bit words, little endian"),
        ],
    ),
    "Entry": (
        "A tensor (1, C, H, W) in activation memory.",
        [
            (1, "", "string", "name", ""),
            (2, "", "uint32", "base", "word of channel 0, pixel (0, 0)"),
            (3, "", "uint32", "plane", "words from one channel block to the next"),
            (4, "", "uint32", "row", "words from one row to the next"),
            (5, "repeated", "uint32", "shape", "1, C, H, W"),
            (6, "", "uint32", "lane", "lane of channel 0"),
            (7, "", "double", "scale", "real = (q - zero_point) * scale"),
            (8, "", "sint32", "zero_point", ""),
            (9, "", "uint32", "ready", "complete once this many vector instructions are; 0: an input"),
            (10, "", "uint32", "last", "kept until this many vector instructions are complete"),
            (11, "", "string", "op", "operation that made it"),
            (12, "", "string", "golden", "SHA-256 of its values for the test vector, or empty"),
            (13, "repeated", "uint32", "model", "shape of the model's tensor if another array is stored, else empty"),
            (15, "", "Constants", "constants", "the stored array is the model's tensor less its constant channels"),
            (16, "", "Packed", "packed", "the stored array is the model's tensor as bytes in a row"),
            (17, "repeated", "Piece", "external", "where an input or output lies, if in external memory"),
            (18, "", "TensorPart", "part", "the box of a tensor of the model that this is, if it is not all of one"),
        ],
    ),
    "Piece": (
        "A box of a tensor in external memory, where words are as long as in activation memory.",
        [
            (1, "repeated", "uint32", "box", "first channel, row, column"),
            (2, "repeated", "uint32", "size", "channels, rows, columns"),
            (3, "", "uint32", "base", "word of channel 0, pixel (0, 0)"),
            (4, "", "uint32", "plane", "words from one channel block to the next"),
            (5, "", "uint32", "row", "words from one row to the next"),
            (6, "", "Packed", "packed", "the box lies there as bytes in a row"),
        ],
    ),
    "TensorPart": (
        "A box of a tensor.",
        [
            (1, "", "string", "tensor", ""),
            (2, "repeated", "uint32", "box", "first channel, row, column"),
            (3, "repeated", "uint32", "size", "channels, rows, columns"),
        ],
    ),
    "Packed": (
        "Element (c, y, x) of the model's tensor is byte first + y * row + x * column + c, lane l of word w being byte "
        "w * word + l; every other byte is the zero point.",
        [
            (1, "", "uint32", "word", "bytes of a word"),
            (2, "", "uint32", "words", "of the stored array"),
            (3, "", "uint32", "first", ""),
            (4, "", "uint32", "row", ""),
            (5, "", "uint32", "column", ""),
        ],
    ),
    "Constants": (
        "The channels of the model's tensor that are stored, and what the others hold.",
        [
            (1, "repeated", "uint32", "channels", "stored ones, in the order of the stored array"),
            (2, "repeated", "sint32", "values", "of the other channels in order"),
        ],
    ),
    "Port": (
        "A model input or output and the host's steps to or from its tensor.",
        [
            (1, "", "string", "name", ""),
            (2, "repeated", "uint64", "shape", ""),
            (3, "", "string", "dtype", ""),
            (4, "", "string", "tensor", ""),
            (5, "repeated", "string", "steps", "one JSON object each"),
        ],
    ),
    "Layer": (
        "One operation, for reports.",
        [
            (1, "", "string", "name", ""),
            (2, "", "string", "kind", ""),
            (3, "", "uint64", "macs", "executed multiply-accumulates"),
            (4, "repeated", "Range", "instructions", "as many of a unit as it has runs, in order"),
            (5, "", "uint64", "nominal", "multiply-accumulates of the model"),
        ],
    ),
    "Range": (
        "The instructions [first, last) of a unit.",
        [
            (1, "", "string", "unit", ""),
            (2, "", "uint32", "first", ""),
            (3, "", "uint32", "last", ""),
        ],
    ),
}


def proto() -> str:
    """The declaration as the text of ``program.proto``."""
    lines = [
        "// The container of a compiled model. Printed by `python -m onnxhw.program.schema`; do not edit.",
        'syntax = "proto3";',
        "",
        f"package {PACKAGE};",
    ]
    for name, (what, fields) in MESSAGES.items():
        lines += ["", f"// {what}", f"message {name} {{"]
        for number, label, kind, field, meaning in fields:
            text = f"{label} {kind} {field} = {number};".lstrip()
            lines.append(f"  {text}  // {meaning}" if meaning else f"  {text}")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _descriptor() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="onnxhw/program.proto", package=PACKAGE, syntax="proto3")
    proto_type = descriptor_pb2.FieldDescriptorProto
    for name, (_, fields) in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, label, kind, field, _ in fields:
            entry = message.field.add(name=field, number=number)
            entry.label = proto_type.LABEL_REPEATED if label else proto_type.LABEL_OPTIONAL
            if kind in MESSAGES:
                entry.type, entry.type_name = proto_type.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                entry.type = proto_type.Type.Value(f"TYPE_{kind.upper()}")
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_descriptor())


def message(name: str) -> Any:
    """A new, empty message of that name."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))()


if __name__ == "__main__":
    print(proto(), end="")
