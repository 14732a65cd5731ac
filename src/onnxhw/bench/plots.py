"""`draw`: the pictures of a measured program, as files to be written."""

from html import escape

from ..program.model import DeviceProgram
from ..report import svg
from ..report.figure import png
from ..report.figure import svg as element
from ..report.gantt import gantt
from ..report.profile import Profile
from ..report.roofline import roofline

STYLE = f"""
:root {{ --c0: #2f6db5; --c1: #d9822b; --c2: #2f8f6b; --c3: #b8485c; --c4: #7a5bb0; --c5: #8a7a2e; --c6: #3a93ad; --c7: #a0578f; }}
body {{ margin: 24px auto; max-width: 1200px; padding: 0 16px; background: #fff; color: #1c1d1f; font: 15px/1.5 system-ui, sans-serif; }}
svg {{ width: 100%; height: auto; }} p {{ color: #62666d; max-width: 100ch; }}
.units text {{ font: 11px system-ui, sans-serif; fill: #62666d; }} .units .lane {{ fill: #f0f1f3; }}
.units .grid {{ stroke: #dcdde0; stroke-width: .6; }} .units rect[class^="c"] {{ stroke: #fff; stroke-width: .3; }}
{" ".join(f".units rect.c{n} {{ fill: var(--c{n}); }}" for n in range(svg.COLOURS))}
"""  # noqa: E501  # a rule per line


def draw(program: DeviceProgram, profile: Profile, name: str) -> dict[str, bytes]:
    """File name, which begins with `name`, and content of each file: roofline and timeline as PNG, and both in one page
    that needs no other file.

    `UsageError` E2606 without matplotlib.
    """
    stem = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    roof, time = roofline(program, profile), gantt(program, profile)
    title = escape(name)
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head><body>
<h1>{title}</h1>
<h2>Roofline</h2>
<p>A point is a layer, its size the cycles it takes; at the roof it does all that weights or results let through.</p>
{element(roof)}
<h2>Layers over time</h2>
{element(time)}
<h2>Units over time</h2>
<p>Every bar is one instruction, a colour per layer; times are exact. Point at a bar for its numbers.</p>
<div class="units">{svg.units(program, profile)}</div>
</body></html>
"""
    return {f"{stem}-roofline.png": png(roof), f"{stem}-timeline.png": png(time), f"{stem}.html": text.encode()}

