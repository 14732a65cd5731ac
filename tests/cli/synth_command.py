"""`onnxhw synth` as tests call it."""

import json

from onnxhw.cli import main


def run(capsys, *arguments, status=0):
    assert main(["synth", *map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)
