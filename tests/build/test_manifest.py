"""The manifest reads itself back and knows its files."""

import pytest

from onnxhw.build.manifest import Manifest


def test_manifest_reads_itself_back():
    manifest = Manifest(board="ulx3s-25f", seed=2, fmax_mhz=101.5, resources={"ebr": {"used": 3, "available": 56}})
    manifest.add_file("top.bit", b"bits")
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert manifest.mismatches({"top.bit": b"bits"}) == []
    assert manifest.mismatches({"top.bit": b"bots", "other": b""}) == ["top.bit", "other"]


def test_another_schema_is_refused():
    with pytest.raises(ValueError, match="schema must be 1, not 2"):
        Manifest.from_json('{"schema": 2}')
