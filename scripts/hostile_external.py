"""Hostile models with data in other files; see hostile_models.py."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onnx import TensorProto

sys.path.insert(0, str(Path(__file__).resolve().parent))
from hostile_base import DATA, Build, Model, add, attribute_tensor, base, subgraph_tensor

T = TensorProto


def outside(
    tensor: Callable[[Model], TensorProto] = lambda model: model.graph.initializer[0],
    prepare: Callable[[Path], Any] = lambda folder: (folder / "w.bin").write_bytes(DATA.tobytes()),
    extra: Callable[[TensorProto], Any] = lambda tensor: None,
    **entries: str,
) -> Build:
    """A model file whose tensor lies in ``w.bin`` (or says so)."""

    def build(folder: Path) -> Path:
        model = base()
        found = tensor(model)
        found.ClearField("raw_data")
        found.data_location = TensorProto.EXTERNAL
        for key, value in ({"location": "w.bin"} | entries).items():
            if value:
                found.external_data.add(key=key, value=value)
        extra(found)
        inner = folder / "model"
        inner.mkdir()
        prepare(inner)
        (inner / "model.onnx").write_bytes(model.SerializeToString())
        return inner / "model.onnx"

    return build


def linked(folder: Path) -> None:
    """A symbolic link instead of the data."""
    (folder.parent / "secret").write_bytes(DATA.tobytes())
    (folder / "w.bin").symlink_to(folder.parent / "secret")


def linked_folder(folder: Path) -> None:
    """A folder that is a link."""
    (folder.parent / "elsewhere").mkdir()
    (folder.parent / "elsewhere" / "w.bin").write_bytes(DATA.tobytes())
    (folder / "sub").symlink_to(folder.parent / "elsewhere")


def hard_linked(folder: Path) -> None:
    """A second name for a file outside."""
    (folder.parent / "secret").write_bytes(DATA.tobytes())
    os.link(folder.parent / "secret", folder / "w.bin")


def bytes_only(folder: Path) -> bytes:
    """A model with external data, without a folder."""
    path = outside()(folder)
    assert isinstance(path, Path)
    return path.read_bytes()


for holder, finder in (("weight", None), ("attribute", attribute_tensor), ("subgraph", subgraph_tensor)):
    where = {} if finder is None else {"tensor": finder}
    add("E3127", f"parent-{holder}", outside(location="../secret", **where))
    add("E3123", f"memory-{holder}", outside(location="*/_ORT_MEM_ADDR_/*", offset="4096", length="24", **where))
    add("E3008", f"missing-{holder}", outside(prepare=lambda folder: None, **where))
add("E3008", "bytes", bytes_only)
add("E3008", "file-as-folder", outside(location="w.bin/x"))
add("E3120", "no-location", outside(location=""))
add("E3121", "unknown-key", outside(__class__="x"))
add("E3122", "twice", outside(extra=lambda t: t.external_data.add(key="location", value="v.bin")))
add("E3123", "memory-marker-inside", outside(location="a/_ORT_MEM_ADDR_/b"))
add("E3124", "url", outside(location="https://example.org/w.bin"))
add("E3124", "file-url", outside(location="file:///etc/passwd"))
add("E3125", "absolute", outside(location="/etc/passwd"))
add("E3125", "drive", outside(location="C:/w.bin"))
add("E3125", "unc", outside(location="\\\\server\\w.bin"))
add("E3126", "backslash", outside(location="a\\..\\w.bin"))
add("E3126", "nul", outside(location="w.bin\0.png"))
add("E3126", "newline", outside(location="w\n.bin"))
add("E3127", "parent-inside", outside(location="a/../../secret"))
add("E3127", "parent-harmless", outside(location="a/../w.bin"))
add("E3128", "dot", outside(location="."))
add("E3128", "trailing-slash", outside(location="w.bin/"))
add("E3128", "double-slash", outside(location="a//w.bin"))
add("E3129", "symlink", outside(prepare=linked))
add("E3129", "symlink-folder", outside(prepare=linked_folder, location="sub/w.bin"))
add("E3130", "hard-link", outside(prepare=hard_linked))
add("E3131", "pipe", outside(prepare=lambda folder: os.mkfifo(folder / "w.bin")))
add("E3131", "folder", outside(prepare=lambda folder: (folder / "w.bin").mkdir()))
add("E3132", "string", outside(extra=lambda t: setattr(t, "data_type", T.STRING)))
add("E3133", "both", outside(extra=lambda t: setattr(t, "raw_data", DATA.tobytes())))
add("E3133", "both-typed", outside(extra=lambda t: t.float_data.extend([1.0])))
for name, text in (("negative", "-4"), ("hex", "0x10"), ("underscore", "1_0"), ("digits", "\u0663"), ("float", "1e3")):
    add("E3134", f"offset-{name}", outside(offset=text))
    add("E3134", f"length-{name}", outside(length=text))
add("E3134", "offset-huge", outside(offset="9" * 30))
add("E3135", "offset-beyond", outside(offset="8"))
add("E3135", "offset-far-beyond", outside(offset="9223372036854775807"))
add("E3135", "truncated", outside(prepare=lambda folder: (folder / "w.bin").write_bytes(DATA.tobytes()[:-1])))
add("E3136", "length-short", outside(length="20"))
add("E3136", "length-petabyte", outside(length=str(1 << 50)))
add("E3137", "checksum-short", outside(checksum="abc"))
add("E3138", "checksum", outside(checksum="0" * 40))
add("E3139", "total", outside(), "total_bytes=20")
add("E3139", "elements", outside(extra=lambda t: t.dims.__setitem__(0, 1 << 24)), "total_bytes=1000000")
add("E3140", "files", outside(), "data_files=0")
