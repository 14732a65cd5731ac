"""Windows and transforms of signals, text, boxes."""

from typing import Any

import numpy as np

from ..draw import Draw
from ..values import WORDS
from .elementwise import code


def window(d: Draw) -> None:
    d.attr("periodic", [0, 1])
    if d.maybe("output_datatype"):
        d.attributes["output_datatype"] = code(d.type("T2"))
    d.ints(d.choose("size", [2, 5, 10]), d.type("T1"))


def mel(d: Draw) -> None:
    kind = d.type("T1")
    for value in (d.integer(2, 6), d.pick([16, 32]), 8192):
        d.ints(value, kind)
    element = d.of(d.type("T2"), (), "plain").dtype
    d.x(np.asarray(d.pick([0.0, 100.0]), element))
    d.x(np.asarray(4096.0, element))
    if d.maybe("output_datatype"):
        d.attributes["output_datatype"] = code(d.type("T3"))


def dft(d: Draw) -> None:
    inverse, real = d.attr("inverse", [0, 1]), d.choose("operand", ["real", "complex"]) == "real"
    size = d.choose("size", [1, 2, 3, 8, 5])
    rank = d.choose("rank", ["3-D", "4-D"])
    axes = 1 if rank == "3-D" else 2
    at = d.integer(1, axes)
    shape = [d.integer(1, 2), *(d.integer(1, 3) for _ in range(axes)), 1 if real else 2]
    shape[at] = size
    if real and not inverse:
        d.attr("onesided", [0, 1])
    d.x(d.array("T1", shape, "plain"))
    length = d.maybe("dft_length")
    if length:
        d.ints(size + d.pick([0, 1, -1] if size > 1 else [0, 1]), d.type("T2"))
    else:
        d.skip()
    if d.has("axis"):
        d.attributes["axis"] = at
    elif at != axes or d.maybe("axis"):
        d.ints(at if d.rng.random() < 0.5 else at - axes - 2)
    else:
        d.maybe("axis")


def stft(d: Draw) -> None:
    frame, step = d.choose("frame", [2, 4, 5]), d.integer(1, 3)
    signal = d.choose("operand", ["real", "complex"])
    if signal == "complex":
        d.attributes["onesided"] = 0
    else:
        d.attr("onesided", [0, 1])
    d.x(d.array("T1", (d.integer(1, 2), frame + d.integer(0, 8), 1 if signal == "real" else 2), "plain"))
    kind = d.type("T2")
    d.ints(step, kind)
    if d.maybe("window"):
        d.x(d.array("T1", (frame,), "plain"))
    else:
        d.skip()
    if d.inputs[-1] == "" or d.maybe("frame_length"):
        d.ints(frame, kind)


def boxes(d: Draw) -> None:
    d.attr("center_point_box", [0, 1])
    batches, count, classes = d.integer(1, 2), d.integer(1, 6), d.integer(1, 3)
    corner = d.rng.integers(0, 5, (batches, count, 2))
    d.x(np.concatenate([corner, corner + d.rng.integers(1, 5, corner.shape)], -1).astype(np.float32))
    d.x(d.rng.permuted(np.arange(batches * classes * count)).reshape(batches, classes, count).astype(np.float32) / 64)
    for name, value in (
        ("max_output_boxes_per_class", np.asarray([d.integer(0, 4)], np.int64)),
        ("iou_threshold", np.asarray([d.pick([0.0, 0.3, 0.5, 1.0])], np.float32)),
        ("score_threshold", np.asarray([d.pick([0.0, 0.2])], np.float32)),
    ):
        if d.maybe(name):
            d.x(value)
        else:
            d.skip()


def _words(d: Draw, shape: Any) -> Any:
    return d.of("string", shape)


def normalizer(d: Draw) -> None:
    d.attr("case_change_action", ["NONE", "LOWER", "UPPER"])
    d.attr("is_case_sensitive", [0, 1])
    d.attr("stopwords", [["the"], ["The", "a"], [w for w in WORDS if w]])
    d.attr("locale", ["en_US"])
    rank = d.choose("rank", ["1-D", "2-D"])
    size = d.choose("size", [1, 4, 8])
    d.x(_words(d, (size,) if rank == "1-D" else (1, size)))


def string_split(d: Draw) -> None:
    d.attr("delimiter", ["", ",", " ", "bc"])
    d.attr("maxsplit", [0, 1, 5])
    shape = d.shape()
    text = ["a,b,c", " x  y ", "", "bcabc", "a b", ",", "日,本", "aa"]
    d.x(np.array([d.pick(text) for _ in range(int(np.prod(shape)))], object).reshape(shape))
    d.outputs = 2


def regex(d: Draw) -> None:
    d.attr("pattern", ["a*", r"\d+", "(a|b)+c?", "", r"[^\s]*", "né", r"\p{L}+"])
    d.x(_words(d, d.shape()))


def tfidf(d: Draw) -> None:
    d.attr("mode", ["TF", "IDF", "TFIDF"])
    text = d.type("T") == "string"
    rank = d.choose("rank", ["1-D", "2-D"])
    low = d.attr("min_gram_length", [1, 2])
    d.attributes["max_gram_length"] = 2
    d.attr("max_skip_count", [0, 1, 3])
    pool = [1, 2, 3, 1, 2, 2, 3, 3, 3]
    d.attributes["ngram_counts"] = [0, 3]
    d.attributes["ngram_indexes"] = [int(i) for i in d.rng.permutation(6)]
    if text:
        d.attributes["pool_strings"] = [WORDS[i] for i in pool]
    else:
        d.attributes["pool_int64s"] = pool
    if d.maybe("weights"):
        d.attributes["weights"] = [0.5, 1.0, 2.0, 0.25, 3.0, 1.5]
    values = d.rng.integers(1, 5, (6,) if rank == "1-D" else (2, 6))
    d.x(
        np.array([WORDS[i] for i in values.ravel()], object).reshape(values.shape)
        if text
        else values.astype(d.type("T"))
    )
    d.options["min_gram_length"] = str(low)


GENERATORS = {
    **dict.fromkeys(["BlackmanWindow", "HammingWindow", "HannWindow"], window),
    "MelWeightMatrix": mel,
    "DFT": dft,
    "STFT": stft,
    "NonMaxSuppression": boxes,
    "StringNormalizer": normalizer,
    "StringSplit": string_split,
    "RegexFullMatch": regex,
    "TfIdfVectorizer": tfidf,
}
