"""What the tests of a folder share: a cache of bitstreams of their own."""

import pytest

from onnxhw.build.cache import Cache


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """An empty cache of bitstreams."""
    return Cache("bitstream", tmp_path_factory.mktemp("cache"))
