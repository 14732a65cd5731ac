"""`collection_paused`: no search for cyclic garbage while much is made and kept."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Elaboration makes millions of objects that stay: to look for garbage among them takes half of its time. Of the
    scheduler's time it takes a sixth.

    It is looked for again behind the block, if it was before.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
