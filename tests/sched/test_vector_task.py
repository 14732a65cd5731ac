"""Windows over the whole of an operand that are larger than an instruction's fields hold."""

from typing import Any

import numpy as np
import pytest

from onnxhw import emu, golden
from onnxhw.errors import UnsupportedError
from onnxhw.ir.graph import AveragePool, MaxPool, Tensor
from onnxhw.ir.windows import Window
from onnxhw.presets import preset
from onnxhw.sched import schedule
from onnxhw.sched.vector_task import MOST_COLS, MOST_ROWS, folded


def whole(net: Any, kind: type[AveragePool | MaxPool], *size: int) -> Any:
    x = net.input(18, *size)
    y = "pooled"
    net.tensors[y] = Tensor(y, (1, 18, 1, 1), net.tensors[x].scale, net.tensors[x].zero_point)
    net.ops.append(kind("pool", (x,), y, kernel=size))
    return net.graph(y)


@pytest.mark.parametrize("size", [(1, 1024), (1, 4000), (300, 2), (3, 1100)])
@pytest.mark.parametrize("kind", [AveragePool, MaxPool])
def test_a_window_over_everything_may_have_any_size(
    kind: type[AveragePool | MaxPool], size: tuple[int, int], new_net: Any
) -> None:
    net = new_net(sum(size))
    graph, values, hw = whole(net, kind, *size), net.values(), preset("ulx3s-85f")
    made = emu.run(schedule(graph, hw), values).outputs
    assert np.array_equal(made["pooled"], golden.run(graph, values)["pooled"])


def test_a_row_of_a_large_prime_is_refused(new_net: Any) -> None:
    with pytest.raises(UnsupportedError, match="window columns is 1031") as error:
        schedule(whole(new_net(1), AveragePool, 1, 1031), preset("ulx3s-85f"))
    assert error.value.code == "E4307"


def test_windows_that_fit_or_move_stay_as_they_are() -> None:
    x = Tensor("x", (1, 4, 2, MOST_COLS), 0.5, 3)
    assert folded(Window((2, MOST_COLS)), x) == (Window((2, MOST_COLS)), x)
    wide = Tensor("x", (1, 4, 1, 2048), 0.5, 3)
    for window in (Window((1, 1024)), Window((1, 2048), pads=(0, -1, 0, 0)), Window((1, 2048), pads=(0, 1, 0, 0))):
        assert folded(window, wide) == (window, wide)
    window, found = folded(Window((1, 2048)), wide)
    assert window.kernel == found.shape[2:] == (4, 512)
    assert window.kernel[0] <= MOST_ROWS
