"""How a command reads its model: ``--shape``, ``--limit``, ``--exact-softmax`` and ``--untrusted``; and which values
stay from run to run: ``--persist`` and ``--initial``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError

if TYPE_CHECKING:
    from ...compiler.states import StatePair
    from ...onnxfile.limits import Limits


@dataclass(frozen=True)
class ReadOptions:
    """The words of ``--shape``, ``--limit``, ``--persist`` and ``--initial``, whether each Softmax stays in float, and
    whether the model is read in a bounded child process first."""

    shapes: Sequence[str] = ()
    limits: Sequence[str] = ()
    untrusted: bool = False
    exact_softmax: bool = False
    persist: Sequence[str] = ()
    initial: Sequence[str] = ()

    @property
    def states(self) -> "tuple[StatePair, ...]":
        """The pairs of every ``--persist`` with the arrays of ``--initial``; `UsageError` E2531 for what is none, E2905
        for a file that is no .npy."""
        from ...compiler.states import StatePair
        from .arrays import read_arrays

        pairs = [_two_names(flag, "--persist must be OUTPUT=INPUT") for flag in self.persist]
        files = dict(_two_names(flag, "--initial must be INPUT=FILE") for flag in self.initial)
        if others := files.keys() - {name for _, name in pairs}:
            raise UsageError("E2531", f"--initial: no --persist names the input {min(others)!r}")
        arrays = {name: read_arrays(Path(file), [name]) for name, file in files.items()}
        values = {name: found.get(None, found.get(name)) for name, found in arrays.items()}
        return tuple(StatePair(output, name, values.get(name)) for output, name in pairs)

    @property
    def sizes(self) -> dict[str, int]:
        """The ``NAME=N`` of every ``--shape``; `UsageError` E2530 for what is not that."""
        found = {}
        for flag in self.shapes:
            name, _, number = flag.rpartition("=")
            if not name or not number.isdecimal() or len(number) > 18:
                raise UsageError(
                    "E2530", f"--shape must be NAME=N, not {flag!r}", hint="--shape N=1 or --shape input:0=1"
                )
            found[name] = int(number)
        return found

    @property
    def allowed(self) -> "Limits":
        """The limits; `UsageError` E2160 for what is none."""
        from ...onnxfile.limits import Limits

        return Limits.from_flags(self.limits)

    def source(self, model: Path) -> Path | bytes:
        """What is read: the file, or with ``--untrusted`` what the child process has made of it."""
        if not self.untrusted:
            return model
        from ...partition.untrusted import read_untrusted

        return bytes(read_untrusted(model, self.allowed, shapes=self.sizes).model.SerializeToString())

    @classmethod
    def recorded(cls, manifest: Mapping[str, Any], untrusted: bool = False) -> "ReadOptions":
        """As a manifest (`onnxhw.driver.artifact.manifest` has checked it) says that its model was read."""
        shapes, limits = (list(manifest.get(name, [])) for name in ("shapes", "limits"))
        persist = list(manifest.get("persist", []))
        return cls(shapes, limits, untrusted, manifest.get("exact_softmax", False), persist)


def _two_names(flag: str, what: str) -> tuple[str, str]:
    first, _, second = flag.partition("=")
    if not first or not second:
        raise UsageError("E2531", f"{what}, not {flag!r}", hint="--persist h_next=h --initial h=h.npy")
    return first, second


TRUSTED = ReadOptions()
"""As a model is read unless options say otherwise."""
