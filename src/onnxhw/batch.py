"""`Batch`: what is known of the samples of a model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Batch:
    """What a model says of its batch, and what was proved.

    size : samples of every call, where the file has a batch of more than 1 and the model was placed for one sample;
        0 where the batch is open.
    inputs, outputs : those whose first dimension counts samples; what else there is, is the same for all samples.
    mixing : where and why samples may meet; "" if it is proved that they do not. `outputs` is empty otherwise.
    unsized : how to say the size of the batch, where the model could not be placed for any; "" where it was.
    """

    size: int
    inputs: frozenset[str]
    outputs: frozenset[str] = frozenset()
    mixing: str = ""
    unsized: str = ""
