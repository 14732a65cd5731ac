"""`program.ohw` gives back the program, byte for byte the same, and refuses everything else by name."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from heuristics import Net
from small_networks import SMALL

from onnxhw.compiler import compile_graph
from onnxhw.config import FORMAT
from onnxhw.errors import InternalError, UsageError
from onnxhw.isa.instructions import UNITS
from onnxhw.presets import PRESETS
from onnxhw.program import DeviceProgram, container, load, save
from onnxhw.program.container import dumps, loads
from onnxhw.program.parts import Program
from onnxhw.program.schema import message, proto


def assert_same(a: DeviceProgram, b: DeviceProgram) -> None:
    for field in dataclasses.fields(DeviceProgram):
        left, right = getattr(a, field.name), getattr(b, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, field.name
            assert np.array_equal(left, right), field.name
        else:
            assert left == right, field.name


def whole(program: DeviceProgram) -> bytes:
    """The file of a model that is one hardware part."""
    return dumps(Program.of(program))


def test_round_trip(program, tmp_path: Path) -> None:
    save(Program.of(program), tmp_path / "program.ohw")
    again = load(tmp_path / "program.ohw", program.config)
    assert_same(again.only(), program)
    assert dumps(again) == whole(program) == (tmp_path / "program.ohw").read_bytes()


def test_a_program_in_segments(tmp_path: Path) -> None:
    """Its image, the pieces of its inputs, packed and not, and the boxes of parts."""
    net = Net(1, 16)
    program = compile_graph(net.graph("packed", net.conv(net.conv("x", 12), 12)), SMALL)
    assert any(piece.storage for entry in program.tensors.values() for piece in entry.external)
    save(Program.of(program), tmp_path / "program.ohw")
    assert_same(load(tmp_path / "program.ohw").only(), program)


def test_a_wrong_checksum_is_refused(program) -> None:
    file = message("File")
    file.ParseFromString(whole(program))
    file.sha256 = bytes(32)
    with pytest.raises(UsageError, match="its checksum differs") as caught:
        loads(file.SerializeToString(deterministic=True))
    assert caught.value.code == "E2121"


def test_an_empty_program(program) -> None:
    empty = DeviceProgram(
        program.config, "", {unit: [] for unit in UNITS},
        np.zeros((0, 12), np.uint8), np.zeros((0, 2), np.uint64), np.zeros((0, 256), np.int8), {}, [], [], [], 0, 0,
    )  # fmt: skip
    assert_same(loads(whole(empty)).only(), empty)


def test_every_flipped_bit_is_refused(program) -> None:
    data = whole(program)
    codes = set()
    for bit in range(8 * len(data)):
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(UsageError) as caught:
            loads(bytes(broken), "program.ohw")
        codes.add(caught.value.code)
    assert codes == {"E2120", "E2121", "E2122"}


def test_every_truncation_is_refused(program) -> None:
    data = whole(program)
    for length in range(len(data)):
        with pytest.raises(UsageError) as caught:
            loads(data[:length])
        assert caught.value.code in ("E2120", "E2121", "E2122")


@pytest.mark.parametrize("tail", [b"\0", b"\x10\x07", b"\x22\x00", b"\x2a\x01x"])
def test_bytes_that_do_not_belong_are_refused(program, tail: bytes) -> None:
    """Also fields that a protobuf reader would skip or merge without a word."""
    with pytest.raises(UsageError, match="damaged program file") as caught:
        loads(whole(program) + tail)
    assert caught.value.code == "E2121"


@pytest.mark.parametrize("data", [b"", b"\x08\x0a\x12\x07pytorch", b"\x7fELF" * 10, b"\n\x0eonnxhw progra"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"model\.onnx: not an onnxhw program file\.? Hint: onnxhw compile") as caught:
        loads(data, "model.onnx")
    assert caught.value.code == "E2120"


def outer(payload: bytes, version: int = container.FORMAT) -> bytes:
    """A file with a right checksum around any payload."""
    file = message("File")
    file.ParseFromString(container._wrap(payload))
    file.format = version
    return bytes(file.SerializeToString(deterministic=True))


def payload_of(program: DeviceProgram):
    record = message("Program")
    record.ParseFromString(payload(program))
    return record


def payload(program: DeviceProgram) -> bytes:
    file = message("File")
    file.ParseFromString(whole(program))
    return bytes(file.payload)


def test_other_versions_are_refused_by_name(program) -> None:
    with pytest.raises(UsageError, match="program format 1; this release reads format 7") as caught:
        loads(outer(payload(program), 1))
    assert caught.value.code == "E2122"
    assert_same(loads(outer(payload(program))).only(), program)


def test_a_configuration_that_means_something_else_is_refused(program) -> None:
    record = payload_of(program)
    device = record.parts[0].device
    device.fingerprint = "0" * 16
    with pytest.raises(
        UsageError, match=f"fingerprint {'0' * 16}, in this release {program.config.fingerprint}"
    ) as caught:
        loads(outer(record.SerializeToString()))
    assert caught.value.code == "E2123"
    device.config = device.config.replace(f'"format": {FORMAT}', '"format": 9')
    with pytest.raises(UsageError, match=f"release: configuration format must be {FORMAT}, not 9") as caught:
        loads(outer(record.SerializeToString()))
    assert caught.value.code == "E2123"


def test_another_configuration_than_asked_for_is_refused(program, tmp_path: Path) -> None:
    save(Program.of(program), tmp_path / "p.ohw")
    with pytest.raises(UsageError, match=r"p\.ohw: compiled for 'tiny' \(.*\), not for 'mini'") as caught:
        load(tmp_path / "p.ohw", PRESETS["mini"])
    assert caught.value.code == "E2123"
    renamed = dataclasses.replace(program.config, name="same hardware")
    assert_same(load(tmp_path / "p.ohw", renamed).only(), program)


def break_code(record) -> None:
    record.code[0].words = record.code[0].words[:-4]


def break_unit(record) -> None:
    record.code[1].unit = "store"


def break_weights(record) -> None:
    record.weights = record.weights[:-1]


def break_params(record) -> None:
    record.params = record.params[:-1]


def break_tables(record) -> None:
    record.tables = record.tables[:-1]


def break_shape(record) -> None:
    record.tensors[0].shape.append(3)


def break_packed(record) -> None:
    record.tensors[0].packed.row = 26  # two elements share a byte


def break_first(record) -> None:
    record.tensors[0].packed.first = 23  # the last element lies behind the last word


def break_words(record) -> None:
    record.tensors[0].packed.words = 39  # of another shape than where it lies


def break_storage(record) -> None:
    record.tensors[0].ClearField("packed")


def break_kinds(record) -> None:
    record.tensors[0].constants.channels.append(0)


def break_model(record) -> None:
    record.tensors[1].model[1] = 6


def break_channels(record) -> None:
    record.tensors[1].constants.channels[1] = 3


def break_constants(record) -> None:
    record.tensors[1].constants.values[0] = -129


def break_step(record) -> None:
    record.inputs[0].steps[0] = "{"


def break_deep_step(record) -> None:
    record.inputs[0].steps[0] = "[" * 100_000


def break_port(record) -> None:
    record.outputs[0].tensor = "nothing"


@pytest.mark.parametrize(
    "change",
    [
        break_code,
        break_unit,
        break_weights,
        break_params,
        break_tables,
        break_shape,
        break_packed,
        break_first,
        break_words,
        break_storage,
        break_kinds,
        break_model,
        break_channels,
        break_constants,
        break_step,
        break_deep_step,
        break_port,
    ],
)
def test_contents_that_make_no_sense_are_refused(program, change) -> None:
    record = payload_of(program)
    change(record.parts[0].device)
    with pytest.raises(UsageError, match="damaged program file: its contents cannot be read") as caught:
        loads(outer(record.SerializeToString()))
    assert caught.value.code == "E2121"


@pytest.mark.parametrize("field", ["shape", "elements"])
@pytest.mark.parametrize("text", ['"abcd"', "[-5, 10]", "[Infinity, NaN]", "[[1], true]", "3", "["])
def test_values_of_no_shape_are_refused(program, field: str, text: str) -> None:
    record = payload_of(program)
    setattr(record.inputs[0], field, text)
    with pytest.raises(UsageError, match="E2121"):
        loads(outer(record.SerializeToString()))


def test_values_of_no_type_are_refused_and_ours_are_not(program) -> None:
    record = payload_of(program)
    record.inputs[0].dtype = "bfloat16"
    assert loads(outer(record.SerializeToString())).inputs[0].dtype == "bfloat16"
    record.inputs[0].dtype = "no such \x1b[31m"
    with pytest.raises(UsageError, match=r"E2121.*no such \\x1b"):
        loads(outer(record.SerializeToString()))


def test_a_payload_that_is_no_program_is_refused() -> None:
    with pytest.raises(UsageError, match="damaged") as caught:
        loads(outer(b"\xff\xff\xff"))
    assert caught.value.code == "E2121"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.ohw: cannot read: No such file") as caught:
        load(tmp_path / "none.ohw")
    assert caught.value.code == "E2124"
    with pytest.raises(UsageError, match="cannot read: Is a directory"):
        load(tmp_path)


def test_a_file_that_cannot_be_written_is_named(program, tmp_path: Path) -> None:
    for target in (tmp_path / "none" / "program.ohw", tmp_path):
        with pytest.raises(UsageError, match="cannot write") as caught:
            save(Program.of(program), target)
        assert caught.value.code == "E2125"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_write_leaves_the_old_file(program, tmp_path: Path, monkeypatch, error) -> None:
    path = tmp_path / "program.ohw"
    path.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((KeyboardInterrupt, UsageError)):
        save(Program.of(program), path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["program.ohw"]


def test_a_file_is_replaced_not_overwritten(program, tmp_path: Path) -> None:
    """Who has the old file open, or linked, keeps it whole."""
    path, reader = tmp_path / "program.ohw", tmp_path / "reader"
    path.write_bytes(b"old")
    os.link(path, reader)
    save(Program.of(program), path)
    assert reader.read_bytes() == b"old"
    assert path.read_bytes() == whole(program)


def test_a_host_step_must_be_json(program) -> None:
    port = dataclasses.replace(program.inputs[0], steps=({"scale": np.float32(1)},))
    with pytest.raises(InternalError, match="x: a host step must be JSON values") as caught:
        whole(dataclasses.replace(program, inputs=[port]))
    assert caught.value.code == "E1125"


def test_an_instruction_out_of_range_is_never_written(program) -> None:
    program.code["load"][0] = dataclasses.replace(program.code["load"][0], base=1 << 24)
    with pytest.raises(InternalError, match=r"Load\.base must be 0\.\.16777215"):
        whole(program)


def test_numpy_numbers_are_welcome(program) -> None:
    entry = program.tensors["y"]
    entry.scale, entry.zero_point = np.float32(0.1), np.int64(-5)
    again = loads(whole(program)).only().tensors["y"]
    assert again.scale == float(np.float32(0.1))
    assert again.zero_point == -5


def test_the_proto_text_is_fresh() -> None:
    committed = Path(container.__file__).with_name("program.proto").read_text()
    assert committed == proto(), "run: python -m onnxhw.program.schema > src/onnxhw/program/program.proto"


def test_files_that_are_no_files_are_refused_at_once(tmp_path: Path) -> None:
    """A pipe, a device, and sparse files of terabytes: one that begins like a program, one that does not."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, begins in (("sparse", container._HEAD), ("empty", b"\0")):
        with (tmp_path / name).open("wb") as file:
            file.write(begins)
            file.truncate(1 << 40)
    for name, code in (("pipe", "E2124"), ("zero", "E2124"), ("sparse", "E2124"), ("empty", "E2120")):
        with pytest.raises(UsageError) as caught:
            load(tmp_path / name)
        assert caught.value.code == code, name


def test_more_fields_than_any_program_has_are_refused_before_they_are_unpacked(program) -> None:
    record = payload_of(program)
    data = record.SerializeToString() + b"\x42\x00" * (container.FIELDS + 1)
    with pytest.raises(UsageError, match="more than 1,048,576 fields"):
        loads(container._wrap(data))


def test_two_tensors_of_one_name_and_two_lists_of_a_unit_are_refused(program) -> None:
    for name in ("tensors", "code"):
        record = payload_of(program)
        rows = getattr(record.parts[0].device, name)
        rows.add().CopyFrom(rows[0])
        with pytest.raises(UsageError, match="E2121"):
            loads(outer(record.SerializeToString()))
