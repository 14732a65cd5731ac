"""The example network as a workload, on the smallest board."""

import pytest

from onnxhw.board import find
from onnxhw.explore.campaign import Task
from onnxhw.explore.point import Judge
from onnxhw.explore.space import SearchSpace
from onnxhw.explore.workload import Workload


@pytest.fixture(scope="session")
def workload(digits):
    return Workload.of({"digits": digits})


@pytest.fixture(scope="session")
def task(workload):
    board = find("ulx3s-25f")
    return Task(workload, SearchSpace(board), Judge(board))
