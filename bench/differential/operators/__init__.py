"""`GENERATORS`: by operator, what fills a `Draw` with a valid node of it."""

from collections.abc import Callable

from ..draw import Draw
from . import containers, elementwise, indexing, ml, movement, quantizing, recurrent, signals, sums, trees, windowed

GENERATORS: dict[str, Callable[[Draw], None]] = {
    **elementwise.GENERATORS,
    **movement.GENERATORS,
    **indexing.GENERATORS,
    **sums.GENERATORS,
    **windowed.GENERATORS,
    **quantizing.GENERATORS,
    **recurrent.GENERATORS,
    **containers.GENERATORS,
    **signals.GENERATORS,
    **ml.GENERATORS,
    **trees.GENERATORS,
}
