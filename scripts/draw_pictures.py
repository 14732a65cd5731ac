"""Pictures of docs/ that a program draws: the schedule of examples/digits.onnx, and where its tensors lie."""

from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

from onnxhw.compiler import compile
from onnxhw.presets import preset
from onnxhw.program.model import DeviceProgram
from onnxhw.report import svg
from onnxhw.report.profile import Profile, profile

MODEL = Path(__file__).resolve().parent.parent / "examples" / "digits.onnx"
PRESET = "ulx3s-85f"
COLOURS = ("#2f6db5", "#d9822b", "#2f8f6b", "#b8485c", "#7a5bb0", "#8a7a2e", "#3a93ad", "#a0578f")
"""Those of the report's page in its light form: a file that stands alone has no page to ask."""
KEY = 22.0
"""Height of the key below a drawing."""
STYLE = (
    "svg{background:#fcfcfa}text{font:11px system-ui,sans-serif;fill:#62666d}.label{font-size:12px;fill:#1d1f20}"
    ".lane{fill:#f0f1f3}.grid{stroke:#dcdde0;stroke-width:.6}.soft{opacity:.75}"
    + "".join(f"rect.c{number}{{fill:{colour}}}" for number, colour in enumerate(COLOURS))
)


def schedule() -> str:
    """The units over the cycles of a run, a colour per layer."""
    part, profiled = _compiled()
    return _alone(svg.units(part, profiled), [layer.name for layer in part.layers])


def memory() -> str:
    """Activation memory over the cycles of a run, a colour per layer that makes a tensor."""
    part, profiled = _compiled()
    return _alone(svg.memory(part, profiled), [layer.name for layer in part.layers])


@cache
def _compiled() -> tuple[DeviceProgram, Profile]:
    part = compile(MODEL, preset(PRESET)).only()
    return part, profile(part)


def _alone(element: str, layers: Sequence[str]) -> str:
    """An SVG element of a page as a file of its own, with a key of its colours."""
    head, _, body = element.partition(">")
    width, height = (float(number) for number in head.split('viewBox="0 0 ')[1].split('"')[0].split())
    head = head.replace(f'viewBox="0 0 {width:g} {height:g}"', f'viewBox="0 0 {width:g} {height + KEY:g}"')
    step = (width - svg.LEFT) / len(layers)
    key = "".join(
        f'<g transform="translate({svg.LEFT + number * step:.1f} {height:g})">'
        f'<rect class="c{number % svg.COLOURS}" y="4" width="10" height="10"/>'
        f'<text x="15" y="13">{escape(name)}</text></g>'
        for number, name in enumerate(layers)
    )
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>{body.replace("</svg>", key)}</svg>\n'
