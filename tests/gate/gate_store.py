"""The recorded digests: which pairs there are, the file, and what has changed."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import amaranth
import gate_images
import gate_models
from amaranth.back import rtlil
from netlist import Target

from onnxhw.config import HwConfig
from onnxhw.devices import find_family
from onnxhw.garbage import collection_paused
from onnxhw.presets import PRESETS
from onnxhw.rtl.top import LinkedCore

AMARANTH: str = amaranth.__version__
"""Whose text is recorded."""
FILE = Path(__file__).with_name("digests.json")
REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "models"
"""The MLPerf Tiny networks, beside the checkout."""
LARGE = {
    "ic_resnet8_int8_qdq": ("ulx3s-85f", "ulx3s-45f"),
    "kws_dscnn_int8_qdq": ("ulx3s-85f", "ulx3s-25f", "tang-20k"),
    "vww_mobilenetv1_025_96_int8_qdq": ("ulx3s-85f",),
    "ad_autoencoder_int8_qdq": ("ulx3s-85f-dense", "virtual"),
}
"""Networks that need `REFERENCE`, and the presets they are compiled for."""
DEVICES = {
    "ulx3s-85f": "LFE5U-85F", "ulx3s-85f-dense": "LFE5U-85F", "ulx3s-25f": "LFE5U-25F", "ulx3s-25f-dense": "LFE5U-25F",
}  # fmt: skip
"""Presets that are routed: their RTLIL is for that device, with its cells and sites; of others it is as simulated."""
SMALL = HwConfig(
    "small", rows=4, cols=4, word=8, lanes=2, load_rows=2, acc_bits=24, act_depth=64, act_banks=3, weight_depth=64,
    acc_depth=32, param_depth=32, tables=1, load_ucode=64, array_ucode=64, depthwise_ucode=64, vector_ucode=64,
    requant_dsps=1, inner_product="fast", depthwise=16, window_depth=32,
)  # fmt: skip
"""A configuration with every unit whose RTLIL takes seconds: that of the quick tests."""
CONFIGS = {**PRESETS, SMALL.name: SMALL}
"""The configurations whose RTLIL is recorded."""
LINE = re.compile(r"^\s*(attribute \\(src|generator|onnxhw\w*) .*)?\n", re.MULTILINE)
"""What may differ between equal designs: where in a file something was said, and empty lines."""


def images(name: str) -> dict[str, Any]:
    """The lines of a model for all its presets, by pair."""
    if name in LARGE:
        model = (REFERENCE / f"{name}.onnx").read_bytes()
        return {f"{name} {preset}": gate_images.compiled(model, PRESETS[preset]) for preset in LARGE[name]}
    model = gate_models.MODELS[name]()
    return {f"{name} {preset}": gate_images.compiled(model, config) for preset, config in PRESETS.items()}


def rtlil_text(name: str) -> str:
    """The RTLIL of a configuration's device, without the places in source files."""
    device = LinkedCore(CONFIGS[name], clock_hz=25_000_000)
    made_for = find_family("ecp5")
    target = Target(made_for.primitives(DEVICES[name], CONFIGS[name])) if name in DEVICES else None
    with collection_paused():
        text = rtlil.convert(device, name="device", platform=target, emit_src=False)
    return LINE.sub("", text)


def rtl(name: str) -> dict[str, Any]:
    """The line of a configuration's RTLIL."""
    text = rtlil_text(name)
    counts = (f"{len(re.findall(rf'^ *{word} ', text, re.MULTILINE))} {word}s" for word in ("module", "cell", "wire"))
    return {name: f"{', '.join(counts)}, {gate_images.digest(text)}"}


def recorded() -> dict[str, Any]:
    """The file."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def record(images: dict[str, Any], rtl: dict[str, Any]) -> None:
    """Write the file: a line per pair and per preset, sorted."""
    sections = {"images": images, "rtl": rtl}
    blocks = []
    for section, lines in sections.items():
        body = ",\n".join(f"    {json.dumps(key)}: {json.dumps(lines[key])}" for key in sorted(lines))
        blocks.append(f"  {json.dumps(section)}: {{\n{body}\n  }}")
    text = f'{{\n  "amaranth": {json.dumps(AMARANTH)},\n' + ",\n".join(blocks) + "\n}\n"
    FILE.write_text(text, encoding="utf-8")


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs, a line each; cycles first."""
    return [_change(key, before.get(key), after[key]) for key in sorted(after) if before.get(key) != after[key]]


def changed_cycles(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The pairs whose cycles differ, of those recorded before."""
    found = []
    for key in sorted(before.keys() & after.keys()):
        old, new = gate_images.cycles(before[key]), gate_images.cycles(after[key])
        if old != new:
            found.append(f"{key}: {' + '.join(old)} -> {' + '.join(new)} cycles")
    return found


def is_refused(lines: list[str]) -> bool:
    """Whether a model does not run there at all."""
    return lines[0].startswith("refused")


def _change(key: str, before: Any, after: Any) -> str:
    """Where two entries differ."""
    if before is None:
        return f"{key}: new"
    if isinstance(after, str) or len(before) != len(after):
        return f"{key}: {before} -> {after}"
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    return f"{key}: " + "; ".join(" ".join(_words(a, b)) for a, b in pairs)


def _words(before: str, after: str) -> Iterable[str]:
    """The parts of a line that differ."""
    old, new = (re.split(r", | (?=[a-z]+ [0-9a-f]{12})", line) for line in (before, after))
    if len(old) != len(new):
        return [f"{before} -> {after}"]
    return [f"[{a} -> {b}]" for a, b in zip(old, new, strict=True) if a != b]
