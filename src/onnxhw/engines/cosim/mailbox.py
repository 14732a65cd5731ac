"""Jobs and answers between the engine and the testbench inside the simulator: numbered files in a folder.

A file is written under another name and moved, so that it is whole when it appears. Only the standard library and
numpy: the simulator's own Python loads this.
"""

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

STOP = "stop"
POLL = 0.005


class Mailbox:
    """One folder; `kind` is "job" or "answer"."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, kind: str, number: int, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Post JSON facts and arrays."""
        buffer = io.BytesIO()
        np.savez(buffer, **{"facts": np.array(json.dumps(facts)), **arrays})  # type: ignore[arg-type]  # it may be allow_pickle, for all mypy knows
        scratch = self.folder / f".{kind}-{number}"
        scratch.write_bytes(buffer.getvalue())
        os.replace(scratch, self.folder / f"{kind}-{number}.npz")

    def there(self, kind: str, number: int) -> bool:
        """Whether it has been posted."""
        return (self.folder / f"{kind}-{number}.npz").exists()

    def take(self, kind: str, number: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Read and remove what was posted."""
        path = self.folder / f"{kind}-{number}.npz"
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        path.unlink()
        facts: dict[str, Any] = json.loads(str(arrays.pop("facts")))
        return facts, arrays

    def stop(self) -> None:
        """Ask the testbench to end."""
        (self.folder / STOP).touch()

    @property
    def stopped(self) -> bool:
        """Whether it has been asked to end, or its folder is gone."""
        return (self.folder / STOP).exists() or not self.folder.is_dir()

    def wait(self) -> None:
        """Sleep a little."""
        time.sleep(POLL)
