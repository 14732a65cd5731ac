"""Cyclic garbage is left alone in the block alone, however that ends."""

import gc
from collections.abc import Iterator

import pytest

from onnxhw.garbage import collection_paused


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Whatever a test before has left."""
    before = gc.isenabled()
    gc.enable()
    yield
    if not before:
        gc.disable()


def test_it_is_paused_in_the_block_alone() -> None:
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the outer block goes on"
    assert gc.isenabled()
    with pytest.raises(KeyError), collection_paused():
        raise KeyError
    assert gc.isenabled()
