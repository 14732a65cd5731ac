"""The cost model of `devices/ecp5/estimate.py`: fit it to synthesized configurations, and say how far it is off.

    python bench/cost_model.py                          fit, and print terms and errors
    python bench/cost_model.py --again --workers 2      synthesize every configuration again first
    python bench/cost_model.py --add OUT/front.json     add what `explore --synth --routes` has made of a front first

Logic of array, depthwise unit and multipliers follows from their construction (`counted`); the rest is fitted, with
terms of at least 0, so that relative errors are least. The published error is that of each configuration by a fit to
all others (leave one out). bench/synthesized.json has the configurations and what Yosys made of them, and of points of
fronts also what nextpnr did ("routed"); bench/routed has what nextpnr made of presets. The clock is fitted to those of
the ECP5, by the part of the device's LUT4 that is taken; on Gowin's devices it is a bound.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneOut

from onnxhw.board import find
from onnxhw.cli.common.exploration import design
from onnxhw.cli.common.interrupts import script_status
from onnxhw.cluster import pool
from onnxhw.config import HwConfig
from onnxhw.devices.ecp5 import estimate
from onnxhw.errors import OnnxhwError
from onnxhw.explore.stages import synthesized

HERE = Path(__file__).resolve().parent
SYNTHESIZED = HERE / "synthesized.json"
ROUTED = HERE / "routed"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """Fitted terms, and the relative error of each row by a fit to all others."""

    terms: tuple[float, ...]
    errors: Floats

    def text(self) -> str:
        """Errors in words."""
        far = np.abs(self.errors)
        return f"leave one out: {100 * far.mean():.1f} % on average, {100 * far.max():.1f} % at most"


def rows() -> list[dict[str, Any]]:
    """The synthesized configurations."""
    found: list[dict[str, Any]] = json.loads(SYNTHESIZED.read_text(encoding="utf-8"))["points"]
    return found


def configs(found: list[dict[str, Any]]) -> list[HwConfig]:
    """The configuration of each row."""
    return [HwConfig.from_json(json.dumps(row["config"])) for row in found]


def fitted(features: Floats, known: Floats, made: Floats) -> Fit:
    """Terms ``t`` of 0 or more for ``known + features @ t``, nearest to `made` by relative error."""

    def terms(mine: Any) -> Floats:
        model = LinearRegression(fit_intercept=False, positive=True)
        weights = 1 / made[mine] ** 2
        found: Floats = model.fit(features[mine], (made - known)[mine], sample_weight=weights).coef_
        return found

    errors = np.zeros(len(made))
    for others, (one,) in LeaveOneOut().split(features):
        errors[one] = (known[one] + features[one] @ terms(others)) / made[one] - 1
    return Fit(tuple(float(term) for term in terms(slice(None))), errors)


def logic(kind: str) -> Fit:
    """The fit of "lut" or "ff"."""
    found = rows()
    each = configs(found)
    features = np.array([estimate.features(config) for config in each])
    known = np.array([estimate.counted(config)[kind == "ff"] for config in each], float)
    return fitted(features, known, np.array([row[kind] for row in found], float))


def clock() -> Fit:
    """MHz of an ECP5 of grade -6 that is empty, and what of it a full one loses, if anything, of the routed presets and
    points of fronts, with the board's own link; of several seeds the median, since most were routed with one."""
    results = [json.loads(path.read_text(encoding="utf-8"))["result"] for path in sorted(ROUTED.glob("*.json"))]
    results = [row for row in results if "link" not in row]
    results += [{"board": row["board"], **row["routed"]} for row in rows() if "routed" in row]
    found = [row for row in results if (find(row["board"]).family, find(row["board"]).speed) == ("ecp5", "6")]
    filled = np.array([[1.0, -row["lut"] / find(row["board"]).resources.lut4] for row in found])
    made = np.array([median(row.get("mhz_by_seed", {"": row["fmax_mhz"]}).values()) for row in found])
    return fitted(filled, np.zeros(len(made)), made)


def again(workers: int | None, scheduler: str) -> None:
    """Synthesize every configuration again and write what came out."""
    found = rows()
    with pool(workers, scheduler) as workplace:
        waiting = [
            workplace.submit(synthesized, design, find(row["board"]), config)
            for row, config in zip(found, configs(found), strict=True)
        ]
        made = [wait() for wait in waiting]
    for row, counts in zip(found, made, strict=True):
        if "failed" in counts:
            sys.exit(f"{row['name']}: {counts['failed']}")
        row |= {kind: counts[kind] for kind in ("lut", "ff", "dsp", "ebr")}
    SYNTHESIZED.write_text(document(found), encoding="utf-8")


def add(front: dict[str, Any]) -> None:
    """Add the synthesized points of the ``front.json`` of a search, unless their configurations are there."""
    found = rows()
    known = {config.fingerprint for config in configs(found)}
    for row in front["front"]:
        made, route = row.get("synthesized", {}), row.get("routed", {})
        config = HwConfig.from_json(json.dumps(row["config"]))
        if "lut" in made and config.fingerprint not in known:
            name = f"{'+'.join(front['models'])}/{config.name}"
            new = {"name": name, "board": front["board"], "config": row["config"]}
            new |= {kind: made[kind] for kind in ("lut", "ff", "dsp", "ebr")}
            if "mhz" in route:
                new["routed"] = {"lut": route["lut"], "fmax_mhz": route["mhz"], "seed": route["seed"]}
            found.append(new)
    SYNTHESIZED.write_text(document(found), encoding="utf-8")


def document(points: list[dict[str, Any]]) -> str:
    """The file with these rows, one to a line."""
    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in points)
    return f'{{"points": [\n{lines}\n]}}\n'


def main() -> int:
    """Parse the arguments, print the fits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="synthesize all configurations again first")
    parser.add_argument("--add", type=Path, metavar="FRONT", help="add the synthesized points of a front.json first")
    parser.add_argument("--workers", type=int, help="processes; default: one per processor; 0: this one")
    parser.add_argument("--scheduler", default="", help="address of a Dask scheduler")
    arguments = parser.parse_args()
    if arguments.add:
        try:
            add(json.loads(arguments.add.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, OnnxhwError) as error:
            parser.error(f"--add {arguments.add}: {error}")
    if arguments.again:
        again(arguments.workers, arguments.scheduler)
    for kind, name in (("lut", "LUT_TERMS"), ("ff", "FF_TERMS")):
        fit = logic(kind)
        print(f"{name} = ({', '.join(f'{term:.2f}' for term in fit.terms)})  {len(rows())} points, {fit.text()}")
        for row, part in zip(rows(), fit.errors, strict=True):
            print(f"  {row['name']:32} {row[kind]:7,} {100 * part:+6.1f} %")
    fit = clock()
    print(f"CLOCK = ({', '.join(f'{term:.1f}' for term in fit.terms)})  {len(fit.errors)} points, {fit.text()}")
    return 0


if __name__ == "__main__":
    sys.exit(script_status(main))
