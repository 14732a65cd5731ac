"""``report.html``: one self-contained page about a program on a board."""

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from .. import __version__
from ..program.input_regions import latency
from ..program.model import DeviceProgram
from . import svg
from .memory import lives, usage
from .modes import LOSSES
from .premises import UNROUTED_HZ, constant_channels, sentences
from .profile import CAUSES, LayerRow, Profile
from .roofline_svg import rooflines

UNKNOWN: dict[str, Any] = {
    "board": "", "fmax_mhz": 0.0, "clock_hz": 0, "timing_met": False, "model_sha256": "", "resources": {}, "seed": 0,
    "critical_path": "",
}  # fmt: skip
"""What the page uses of a manifest, and what it takes for a manifest that does not have it."""

CAUSE_TEXT = {
    "busy": "own work: weight steps, pixels, or groups and window positions",
    "weights": "array: the next weight tile is not loaded; load: the shadow registers are in use",
    "short": "tiles of fewer pixels than the accumulator's latency",
    "fetch": "the next instruction is being fetched",
    "order": "waiting for another unit's result",
    "drain": "pipeline latency before the next instruction may issue",
    "tail": "after the unit's last instruction",
}


def page(
    program: DeviceProgram,
    profile: Profile,
    manifest: Mapping[str, Any],
    simulations: Sequence[Mapping[str, Any]],
    premises: Sequence[str] = (),
) -> str:
    """The page's HTML.

    `manifest`: what `manifest.json` holds (may be empty). `simulations`: records of `onnxhw simulate --json`.
    `premises`: sentences about the line and the host.
    """
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["n"] = lambda value: f"{value:,}"
    environment.filters["percent"] = lambda value: f"{100 * value:.1f} %"
    environment.filters["breakable"] = breakable
    environment.filters["main_loss"] = main_loss
    text = _resource("report.html.j2")
    return environment.from_string(text).render(
        program=program,
        config=program.config,
        profile=profile,
        latency=latency(program),
        manifest={**UNKNOWN, **manifest},
        wanted_hz=((manifest.get("choice") or {}).get("rates") or {}).get("clock_hz", UNROUTED_HZ),
        simulations=simulations,
        units_svg=Markup(svg.units(program, profile)),
        memory_svg=Markup(svg.memory(program, profile)),
        roofline_svg=Markup(rooflines(program, profile)),
        usage=usage(program),
        premises=[*sentences(constant_channels([program])), *premises],
        lives=lives(program, profile.timeline),
        causes=CAUSES,
        cause_text=CAUSE_TEXT,
        loss_text=LOSSES,
        colours=svg.COLOURS,
        version=__version__,
        script=Markup(_resource("zoom.js")),
    )


def main_loss(row: LayerRow) -> str:
    """The cause of `modes.LOSSES` to which a layer loses most cycles; empty if it loses none."""
    name = max(row.losses, key=lambda cause: row.losses[cause], default="")
    return name if name and row.losses[name] > 0 and row.window else ""


def breakable(name: str) -> Markup:
    """A name as HTML that may be broken after its separators, and inside a part only after 24 characters."""
    parts = re.findall(r"[^_/.:\-\s]{1,24}[_/.:\-\s]*|[_/.:\-\s]+", name)
    return Markup("<wbr>").join(parts)


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
