"""``onnxhw explore``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common.options import (
    board_option,
    cluster_options,
    common,
    examples,
    reading_options,
    with_options,
)
from .common.output import Output, pass_output

if TYPE_CHECKING:
    from .common.read_options import ReadOptions

MAX_SEED = (1 << 32) - 1
"""Of numpy's generators."""
OBJECTIVES = ("latency", "cycles", "lut", "ebr", "dsp", "clock", "traffic", "moved")


@click.command(
    "explore",
    help="Search the hardware configuration for models: cycles, logic, memory.\n\n"
    + examples("""
  onnxhw explore model.onnx --board ulx3s --points 300
  onnxhw explore one.onnx two.onnx --board ulx3s-25f --points 3000 --json
  onnxhw explore model.onnx --points 3000 --scheduler tcp://10.0.0.1:8786
"""),
    epilog="Each point is a configuration with the exact cycles of the models; logic and clock are predicted. Prints "
    "the front: the points that no other is better than in all objectives. Writes study.jsonl, front.json, report.html "
    "and a file per point of the front, for --preset of the other commands. The same command goes on where study.jsonl "
    "stands.",
)
@click.argument("models", type=click.Path(path_type=Path), nargs=-1, required=True)
@board_option
@reading_options
@click.option("--points", type=click.IntRange(min=1), default=300, show_default=True, metavar="N",
              help="Points with exact cycles.")  # fmt: skip
@click.option("--objective", "objectives", type=click.Choice(OBJECTIVES), multiple=True,
              help="What shall be small (of the clock: large); repeat it. Default: latency, lut, ebr.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=0, show_default=True, metavar="N",
              help="Of the search.")  # fmt: skip
@click.option("--synth", "synthesize", type=click.IntRange(min=0), default=0, metavar="N",
              help="Synthesize N points of the front.")  # fmt: skip
@click.option("--routes", type=click.IntRange(min=0), default=0, metavar="N",
              help="Place and route N points of the front, at the board's clock.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="Placements of each routed point.")  # fmt: skip
@click.option("--sdram", is_flag=True, help="Configurations with the board's external memory. The "
              "default where its block RAMs cannot hold the weights.")
@click.option("--study", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Where all points are kept; default: study.jsonl in the output directory.")  # fmt: skip
@(lambda command: with_options(command, *cluster_options))
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Output directory; default: build/explore-MODEL-BOARD.")  # fmt: skip
@common
@pass_output
def command(
    output: Output, models: tuple[Path, ...], board: str, reading: "ReadOptions", points: int,
    objectives: tuple[str, ...], seed: int, synthesize: int, routes: int, seeds: int, sdram: bool,
    study: Path | None, workers: int | None, scheduler: str, dashboard: bool, out: Path | None,
) -> None:  # fmt: skip
    from ..cluster import pool
    from ..explore.campaign import BuildPlan, Campaign, Task, reference
    from ..explore.point import DEFAULT_OBJECTIVES, Judge
    from ..explore.search import require_optuna
    from ..explore.space import SearchSpace
    from ..explore.workload import Workload
    from .common.exploration import (
        ExploreProgress,
        design,
        needs_external,
        print_front,
        refuse_results,
        require_front,
        require_models,
        require_objectives,
        write_results,
    )
    from .common.outdir import refuse_unwritable
    from .common.pipeline import target
    from .common.workers import tell_workers

    require_optuna()
    chosen = target(board, None)
    folder = out or Path("build") / f"explore-{models[0].stem}-{chosen.board.name}"
    refuse_unwritable(folder)
    refuse_results(kept := study or folder / "study.jsonl", folder)
    named = require_models(models)
    with output.stage(f"read {', '.join(named)}"):
        workload = Workload.of(
            {name: reading.source(path) for name, path in named.items()}, limits=reading.allowed,
            shapes=reading.sizes, exact_softmax=reading.exact_softmax,
        )  # fmt: skip
    external = chosen.board.external_memory() if sdram or needs_external(output, workload, chosen.board) else None
    require_objectives(objectives, external is not None)
    task = Task(workload, SearchSpace(chosen.board, external), Judge(chosen.board))
    campaign = Campaign(task, tuple(dict.fromkeys(objectives)) or DEFAULT_OBJECTIVES, seed)
    with pool(workers, scheduler, dashboard=dashboard) as workplace, ExploreProgress(output, workplace) as progress:
        tell_workers(output, workplace)
        known = reference(workplace, task, progress)
        stages = BuildPlan(design, synthesize, routes, seeds)
        found = campaign.run(workplace, kept, points, known.choices, stages, progress, known.variations)
    record = write_results(folder, campaign, found, known)
    output.data(record)
    print_front(output, record)
    require_front(found, chosen.board)
