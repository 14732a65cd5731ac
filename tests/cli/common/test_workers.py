"""What is told of workers: how many there are, and that there are none."""

import pytest

from onnxhw.cli.common.output import Output
from onnxhw.cli.common.workers import tell_workers, workers_text
from onnxhw.cluster import SerialPool, pool
from onnxhw.explore.stages import BuildState


def test_a_scheduler_without_workers_has_none_and_that_is_said(capsys):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as local,
        pool(scheduler=local.scheduler_address) as found,
    ):
        assert (found.workers, workers_text(found)) == (0, "0 workers")
        tell_workers(Output(), found)
        assert "the scheduler has no workers" in capsys.readouterr().err
        assert BuildState({"routed": 2}, {"routed": {"one": 5.0}}).seconds_left(found.workers) == 5
    tell_workers(Output(), SerialPool())
    assert workers_text(SerialPool()) == "1 worker"
    assert not capsys.readouterr().err
