"""`top_module`: where a netlist of Yosys has its cells."""

from collections.abc import Mapping
from typing import Any


def top_module(record: Mapping[str, Any]) -> dict[str, Any]:
    """The one module of a flat netlist (Yosys' JSON), beside those that only say which ports a cell has."""
    found: dict[str, Any]
    (found,) = (module for module in record["modules"].values() if "top" in module["attributes"])
    return found
