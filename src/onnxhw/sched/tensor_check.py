"""`check_tensors`: each tensor of the table is there between its `ready` and `last`."""

import numpy as np

from ..errors import InternalError
from .checked_code import NEVER, CheckedCode
from .memory_state import lane_groups, tensor_words


def check_tensors(checked: CheckedCode) -> None:
    """Each tensor is written by `ready` (of programs with moves `move_check` proves it), and vector instructions
    leave it alone until `last`; outputs until the end."""
    count = len(checked.vectors)
    inputs = {port.tensor for port in checked.program.inputs}
    outputs = {port.tensor for port in checked.program.outputs}
    first = np.full((checked.config.act_words, checked.config.lane_groups), NEVER, np.int64)
    for index in reversed(range(count)):
        i = checked.vectors[index]
        first[checked.vector_writes[index], i.lane_group : i.lane_group + i.groups] = index
    inside = {name: entry for name, entry in checked.program.tensors.items() if not entry.external}
    for name in inputs & set(inside):
        first[tensor_words(checked.program, name)] = -1
    for name, entry in inside.items():
        where = f"tensor {name!r}"
        words = tensor_words(checked.program, name)
        if not 0 <= entry.ready <= entry.last <= count:
            text = f"ready {entry.ready} and last {entry.last} must lie in 0 .. {count}"
            raise InternalError("E1211", text, where=where)
        groups = lane_groups(checked.program, name)
        latest = first[words].reshape(len(groups), -1, checked.config.lane_groups).max(axis=1)
        if not checked.moves and int(latest[groups].max()) >= entry.ready:
            raise InternalError("E1211", f"is not complete after {entry.ready} vector instructions", where=where)
        mine = np.zeros(checked.config.act_words, bool)
        mine[words] = True
        for index in range(entry.ready, count if name in outputs else entry.last):
            if mine[checked.vector_writes[index]].any():
                text = checked.vectors[index].text()
                raise InternalError("E1211", f"is overwritten by vector[{index}] {text}", where=where)
