"""Pictures with matplotlib, which is an optional dependency: a figure, and its PNG or SVG."""

from io import BytesIO, StringIO
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..isa.units import Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS: dict[str, str] = {
    Unit.ARRAY: "#2f6db5", Unit.DEPTHWISE: "#2f8f6b", "weights": "#d9822b", Unit.VECTOR: "#7a5bb0", "moves": "#8a7a2e",
    Unit.LOAD: "#d9822b",
}  # fmt: skip
"""Of units and of modes (`modes`): what loads weights and what is bound by it have the same."""


def figure(width: float, height: float) -> "Figure":
    """An empty figure of that many inches whose parts make room for each other.

    `UsageError` E2606 without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "E2606", "a plot needs matplotlib, which is not installed", hint="pip install 'onnxhw[plot]'"
        ) from None
    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def png(made: "Figure") -> bytes:
    """The picture as a PNG, without what differs from run to run."""
    data = BytesIO()
    made.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()


def svg(made: "Figure") -> str:
    """The picture as an SVG element, to be put into a page; refers to nothing outside, and is the same in every run."""
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.hashsalt": "onnxhw"}):
        made.savefig(text, format="svg", metadata={"Date": None})
    whole = text.getvalue()
    return whole[whole.index("<svg") :]
