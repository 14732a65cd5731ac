"""Small cores of every kind of array, word and unit; what is compiled of one serves all tests that run it."""

from onnxhw.config import HwConfig

SMALL = {"act_depth": 256, "weight_depth": 160, "acc_depth": 64, "window_depth": 64, "param_depth": 512, "tables": 2}
GEOMETRIES = [
    HwConfig("4x4", rows=4, cols=4, word=4, lanes=2, acc_bits=24, **SMALL),
    HwConfig("4x4 two rows a cycle", rows=4, cols=4, word=4, lanes=4, acc_bits=24, load_rows=2, **SMALL),
    HwConfig("5x3", rows=5, cols=3, word=5, lanes=1, acc_bits=24, **SMALL),
    HwConfig("4x6 of 8 lanes", rows=4, cols=6, word=8, lanes=2, acc_bits=28, load_rows=4, **SMALL),
    HwConfig("3x5 of 8 lanes", rows=3, cols=5, word=8, lanes=4, acc_bits=32, load_rows=3, **SMALL),
    HwConfig("4x5 with depthwise unit", rows=4, cols=5, word=4, lanes=2, acc_bits=24, depthwise=9, **SMALL),
    HwConfig("6x4 with half a word", rows=6, cols=4, word=6, lanes=1, acc_bits=20, depthwise=9, load_rows=3, **SMALL),
    HwConfig("8x16", rows=8, cols=16, word=8, lanes=8, acc_bits=32, load_rows=2, **SMALL),
    HwConfig("fast 4x3", rows=4, cols=3, word=5, lanes=1, acc_bits=24, inner_product="fast", **SMALL),
    HwConfig("fast 6x5", rows=6, cols=5, word=8, lanes=4, acc_bits=24, load_rows=3, inner_product="fast", **SMALL),
    HwConfig("fast 8x4", rows=8, cols=4, word=8, lanes=2, acc_bits=20, load_rows=4, inner_product="fast", **SMALL),
    HwConfig("fast 4x4 whole tiles, depthwise unit", rows=4, cols=4, word=8, lanes=2, acc_bits=24, load_rows=4,
             inner_product="fast", depthwise=9, **SMALL),
    HwConfig("fast 6x3 depthwise unit", rows=6, cols=3, word=6, lanes=3, acc_bits=24, load_rows=2,
             inner_product="fast", depthwise=9, **SMALL),
    HwConfig("3x4 whole tiles, depthwise unit", rows=3, cols=4, word=4, lanes=4, acc_bits=24, load_rows=3,
             depthwise=9, **SMALL),
    HwConfig("fast 10x2", rows=10, cols=2, word=10, lanes=2, acc_bits=24, load_rows=2, inner_product="fast", **SMALL),
    HwConfig("3x4 of whole words", rows=3, cols=4, word=3, lanes=3, acc_bits=24, depthwise=9, **SMALL),
    HwConfig("4x4 unaligned", rows=4, cols=4, word=4, lanes=2, acc_bits=24, unaligned=1, **SMALL),
    HwConfig("fast 8x3 unaligned", rows=8, cols=3, word=8, lanes=2, acc_bits=24, load_rows=8, inner_product="fast",
             depthwise=9, unaligned=1, **SMALL),
    HwConfig("8x2 unaligned by pairs", rows=8, cols=2, word=8, lanes=2, acc_bits=24, unaligned=2, **SMALL),
    HwConfig("16x2 unaligned", rows=16, cols=2, word=16, lanes=2, acc_bits=24, load_rows=16, unaligned=1, **SMALL),
    HwConfig("4x2 unaligned by words", rows=4, cols=2, word=4, lanes=2, acc_bits=24, unaligned=4, **SMALL),
    HwConfig("4x4 early", rows=4, cols=4, word=4, lanes=2, acc_bits=24, unaligned=1, early_completion=15, **SMALL),
    HwConfig("fast 8x4 early, depthwise unit", rows=8, cols=4, word=8, lanes=4, acc_bits=24, load_rows=8,
             inner_product="fast", depthwise=9, early_completion=9, **SMALL),
]  # fmt: skip
