"""The manifest is JSON of its fields, and has the hashes of its files."""

import hashlib
import json
from dataclasses import asdict

from onnxhw.build.manifest import SCHEMA, Manifest


def test_the_manifest_is_its_fields_and_the_schema():
    manifest = Manifest(board="ulx3s-25f", seed=2, fmax_mhz=101.5, resources={"ebr": {"used": 3, "available": 56}})
    manifest.add_file("top.bit", b"bits")
    assert json.loads(manifest.to_json()) == {"schema": SCHEMA, **asdict(manifest)}
    assert manifest.files == {"top.bit": hashlib.sha256(b"bits").hexdigest()}
