"""What commands print, for tests to compare."""

import json

from onnxhw.cli import main


def run_json(capsys, *arguments, status=0):
    """The JSON that a command prints, if it ends with `status`."""
    assert main([*map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)
