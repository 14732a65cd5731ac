"""``onnxhw run`` of a model of which nothing runs on the hardware: the host computes it, without a device."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import UsageError
from .output import Output


def is_model(path: Path) -> bool:
    """Is it a file, or one that is not there but has the name of a model, and no compiled program by its name?"""
    from ...onnxfile.textual import FORMATS
    from ...runtime.executor_names import compiled

    return compiled(path) is None and (path.is_file() or path.suffix.lower() in (".onnx", *FORMATS))


def run(
    output: Output, model: Path, source: Path, target: Path | None, count: int | None, repeat: int, profile: bool
) -> None:
    """All inferences, as ``run`` of a program; `UsageError` E2162 if the model has parts for the hardware, E2163 for
    a profile; else the errors of `InferenceSession` and of the inputs."""
    from ...runtime.session import InferenceSession
    from . import inference
    from .inputs import file_inputs, whole_arrays

    with InferenceSession(model) as session:
        assert session.model is not None
        if session.model.hardware:
            what = "has parts for the hardware, for which it must be compiled"
            hint = f"onnxhw compile {model} -o DIR, then onnxhw run DIR; without a device onnxhw simulate {model}"
            raise UsageError("E2162", what, where=str(model), hint=hint)
        if profile:
            what, hint = "nothing runs on the hardware, so there is no profile", "run it without --profile"
            raise UsageError("E2163", what, where=str(model), hint=hint)
        program = session.program
        inference.check_outputs(model, program, target, source)
        inputs = file_inputs(program.inputs, source, count)
        if inputs.count > 1 and program.batch is not None and program.batch.mixing:
            feeds = whole_arrays(program.inputs, source, count)  # samples may meet: all in one run, as the model says
            names = [value.name for value in program.outputs]
            found, seconds = _measured(lambda _: dict(zip(names, session.run(None, feeds), strict=True)), 1, repeat)
            outputs = found[0]
        else:
            found, seconds = _measured(lambda index: session.infer([inputs.one(index)])[0], inputs.count, repeat)
            outputs = inference.whole(found, program)
    if target is not None:
        inference.save(target, outputs)
    record = {
        "model": program.name,
        "device": "host",
        "inferences": inputs.count,
        "runs": inputs.count * repeat,
        "cycles": 0,
        "host_ms": 1e3 * seconds / (inputs.count * repeat),
        "outputs": None if target is None else str(target),
        "classes": inference.top_classes(outputs, inputs.count),
        "images": list(inputs.images),
    }
    _print(output, record)


def _measured(infer: Callable[[int], dict[str, Any]], count: int, repeat: int) -> tuple[list[dict[str, Any]], float]:
    """The outputs of each inference, and the seconds of all; repetitions are compared as those of a device."""
    from .inference import compare

    start = time.perf_counter()
    results: list[dict[str, Any]] = []
    for number in range(count * repeat):
        found = infer(number % count)
        if number < count:
            results.append(found)
        else:
            compare(results[number % count], found, f"inference {number % count}", number // count)
    return results, time.perf_counter() - start


def _print(output: Output, record: dict[str, Any]) -> None:
    from .inference import print_outputs

    output.data(record)
    runs = record["runs"]
    output.line(f"{record['model']}: nothing of it runs on the hardware, the host computed {runs:,} "
                f"inference{'s' if runs > 1 else ''} of {record['host_ms']:.1f} ms")  # fmt: skip
    print_outputs(output, record)
