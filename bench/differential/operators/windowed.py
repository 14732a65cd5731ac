"""Convolutions, pools, resampling."""

from typing import Any

import numpy as np

from ..draw import Draw


def window(d: Draw, spatial: int, dilated: bool = True, ceil: bool = False) -> tuple[list[int], list[int], Any]:
    """kernel_shape, the input's spatial sizes, and auto_pad; strides, pads, dilations, ceil_mode as attributes."""
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    spread = [1] * spatial
    if dilated and d.has("dilations") and d.maybe("dilations"):
        spread = [d.integer(1, 2) for _ in range(spatial)]
        d.attributes["dilations"] = spread
    auto = d.attr("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]) if d.has("auto_pad") else "NOTSET"
    auto = auto.decode() if isinstance(auto, bytes) else auto
    if d.maybe("strides"):
        d.attributes["strides"] = [d.integer(1, 3) for _ in range(spatial)]
    if auto == "NOTSET" and d.maybe("pads"):
        d.attributes["pads"] = [d.integer(0, k - 1) for _ in range(2) for k in kernel]
    if ceil and d.has("ceil_mode"):
        d.attr("ceil_mode", [0, 1])
    sizes = [(k - 1) * s + 1 + d.integer(0, 4) for k, s in zip(kernel, spread, strict=True)]
    return kernel, sizes, auto


def conv(d: Draw) -> None:
    spatial = d.choose("spatial axes", [1, 2, 3])
    kernel, sizes, _ = window(d, spatial)
    group = d.attr("group", [1, 2, 3])
    c, m = group * d.integer(1, 3), group * d.integer(1, 3)
    if d.maybe("kernel_shape"):
        d.attributes["kernel_shape"] = kernel
    d.x(d.array("T", (d.integer(1, 2), c, *sizes), "plain"))
    d.x(d.array("T", (m, c // group, *kernel), "plain"))
    if d.maybe("B"):
        d.x(d.array("T", (m,), "plain"))


def conv_transpose(d: Draw) -> None:
    spatial = d.choose("spatial axes", [1, 2, 3])
    kernel, _, _ = window(d, spatial)
    group = d.attr("group", [1, 2])
    c, m = group * d.integer(1, 2), d.integer(1, 2)
    if d.maybe("kernel_shape"):
        d.attributes["kernel_shape"] = kernel
    strides = d.attributes.get("strides", [1] * spatial)
    spread = d.attributes.get("dilations", [1] * spatial)
    extra = [0] * spatial
    if d.maybe("output_padding"):
        d.attributes["output_padding"] = extra = [
            d.integer(0, max(steps) - 1) for steps in zip(strides, spread, strict=True)
        ]
    sizes = [d.integer(1, 4) for _ in kernel]
    if d.maybe("output_shape"):
        parts = zip(sizes, kernel, strides, spread, extra, strict=True)
        d.attributes["output_shape"] = [
            d.integer(1, (n - 1) * step + (k - 1) * wide + 1 + max(more, step - 1)) for n, k, step, wide, more in parts
        ]
    d.x(d.array("T", (d.integer(1, 2), c, *sizes), "plain"))
    d.x(d.array("T", (c, m, *kernel), "plain"))
    if d.maybe("B"):
        d.x(d.array("T", (m * group,), "plain"))


def pool(d: Draw) -> None:
    spatial = d.choose("spatial axes", [1, 2, 3])
    kernel, sizes, _ = window(d, spatial, ceil=True)
    d.attributes["kernel_shape"] = kernel
    name = d.operator.name
    for attribute, options in (("count_include_pad", [0, 1]), ("storage_order", [0, 1]), ("p", [1, 2, 3])):
        if d.has(attribute):
            d.attr(attribute, options)
    largest = name == "MaxPool"
    style = d.choose("values", ["plain", "ties", "edges"] if largest else ["plain", "ties"])
    d.x(d.array("T", (d.integer(1, 2), d.integer(1, 2), *sizes), style))
    if largest and d.since >= 8:
        d.outputs = d.choose("outputs", [1, 2])


def overall(d: Draw) -> None:
    d.attr("p", [1, 2, 3])
    largest = d.operator.name == "GlobalMaxPool"
    d.x(
        d.array(
            "T",
            d.shape(3, 5, empty=False),
            d.choose("values", ["plain", "ties", "edges"] if largest else ["plain", "ties"]),
        )
    )


def unpool(d: Draw) -> None:
    shape = (d.integer(1, 2), d.integer(1, 2), d.integer(1, 3), d.integer(1, 3))
    d.attributes["kernel_shape"] = [2, 2]
    d.attributes["strides"] = [2, 2]
    out = [shape[2] * 2, shape[3] * 2]
    d.x(d.array("T1", shape, "plain"))
    plane = np.arange(shape[2])[:, None] * 2 * out[1] + np.arange(shape[3])[None] * 2
    at = plane + d.rng.integers(0, 2, shape) + d.rng.integers(0, 2, shape) * out[1]
    at = at + np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], 1, 1) * out[0] * out[1]
    d.ints(at)
    if d.maybe("output_shape"):
        d.ints([*shape[:2], *out])


def roi(d: Draw) -> None:
    shape = (d.integer(1, 2), d.integer(1, 2), d.integer(3, 6), d.integer(3, 6))
    count = d.integer(1, 3)
    start = d.rng.uniform(0, 2, (count, 2))
    boxes = np.concatenate([start, start + d.rng.uniform(0.5, 3, (count, 2))], 1)
    at = d.rng.integers(0, shape[0], count)
    d.attr("spatial_scale", [1.0, 0.5])
    if d.operator.name == "MaxRoiPool":
        d.attributes["pooled_shape"] = [d.integer(1, 3), d.integer(1, 3)]
        x = d.x(d.array("T", shape, "plain"))
        d.x(np.concatenate([at[:, None], np.rint(boxes)], 1).astype(x.dtype))
        return
    d.attr("mode", ["avg", "max"])
    d.attr("output_height", [1, 2, 3])
    d.attr("output_width", [1, 2, 3])
    d.attr("sampling_ratio", [0, 1, 2])
    if d.has("coordinate_transformation_mode"):
        d.attr("coordinate_transformation_mode", ["half_pixel", "output_half_pixel"])
    x = d.x(d.array("T1", shape, "plain"))
    d.x(boxes.astype(x.dtype))
    d.ints(at)


def resize(d: Draw) -> None:
    mode = d.attr("mode", ["nearest", "linear", "cubic"][: 3 if d.since >= 11 else 2])
    mode = mode.decode() if isinstance(mode, bytes) else mode
    spatial = d.choose("spatial axes", [1, 2] + ([3] if mode != "cubic" else []))
    shape = (1, d.integer(1, 2), *(d.integer(1, 5) for _ in range(spatial)))
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
    modes += ["half_pixel_symmetric"] if d.since >= 19 else ["tf_half_pixel_for_nn"] if d.since == 11 else []
    crop = d.has("coordinate_transformation_mode") and (
        d.attr("coordinate_transformation_mode", modes) in ("tf_crop_and_resize", b"tf_crop_and_resize")
    )
    if d.has("nearest_mode") and mode == "nearest":
        d.attr("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        d.attr("cubic_coeff_a", [-0.75, -0.5])
        d.attr("exclude_outside", [0, 1])
    if crop:
        d.attr("extrapolation_value", [0.0, 9.0])
    if d.has("antialias") and mode != "nearest":
        d.attr("antialias", [0, 1])
    x = d.x(d.array("T1" if "T1" in d.operator.types else "T", shape, "plain"))
    scales = np.array([1, 1, *(d.pick([0.5, 1.0, 1.5, 2.0, 3.0, 0.3]) for _ in range(spatial))], np.float32)
    scales = np.where(np.array(x.shape) * scales < 1, 1, scales).astype(np.float32)
    if d.since == 10:
        d.x(scales)
        return
    if crop:
        roi = np.array([0.0] * len(shape) + [1.0] * len(shape))
        roi[2 : len(shape)], roi[2 + len(shape) :] = 0.25, 0.75
        d.x(roi.astype(d.of(d.type("T2"), ()).dtype) if "T2" in d.operator.types else roi.astype(np.float32))
    elif d.since < 13:
        d.x(np.zeros(0, np.float32), True)
    else:
        d.skip()
    if d.maybe("sizes"):
        d.skip() if d.since >= 13 else d.x(np.zeros(0, np.float32), True)
        d.ints([int(n) for n in np.floor(np.array(shape) * scales)])
        if d.has("keep_aspect_ratio_policy"):
            d.attr("keep_aspect_ratio_policy", ["stretch"])
    else:
        d.x(scales)


def upsample(d: Draw) -> None:
    d.attr("mode", ["nearest", "linear"])
    d.x(d.array("T", (1, d.integer(1, 2), d.integer(1, 4), d.integer(1, 4)), "plain"))
    scales = [1.0, 1.0, d.pick([1.0, 2.0, 3.0]), d.pick([1.0, 2.0, 1.5])]
    if d.has("scales"):
        d.attributes["scales"] = scales
    else:
        d.x(np.array(scales, np.float32))


def grid_sample(d: Draw) -> None:
    spatial = d.choose("spatial axes", [2, 3] if d.since >= 20 else [2])
    modes = ["linear", "nearest", "cubic"] if d.since >= 20 else ["bilinear", "nearest", "bicubic"]
    d.attr("mode", modes[: 2 if spatial == 3 else 3])
    d.attr("padding_mode", ["zeros", "border", "reflection"])
    d.attr("align_corners", [0, 1])
    d.x(d.array("T1", (1, d.integer(1, 2), *(d.integer(2, 4) for _ in range(spatial))), "plain"))
    place = d.rng.uniform(-1.4, 1.4, (1, *(d.integer(1, 3) for _ in range(spatial)), spatial))
    d.x(place.astype(d.of(d.type("T2"), ()).dtype))


def affine_grid(d: Draw) -> None:
    spatial = d.choose("spatial axes", [2, 3])
    d.attr("align_corners", [0, 1])
    n = d.integer(1, 2)
    d.x(d.array("T1", (n, spatial, spatial + 1), "plain"))
    d.ints([n, 2, *(d.integer(1, 4) for _ in range(spatial))])


def columns(d: Draw) -> None:
    spatial = d.choose("spatial axes", [1, 2, 3])
    image = [d.integer(3, 5) for _ in range(spatial)]
    block = [d.integer(1, 2) for _ in range(spatial)]
    dilations, strides, pads = [1] * spatial, [1] * spatial, [0] * 2 * spatial
    if d.maybe("dilations"):
        d.attributes["dilations"] = dilations = [d.integer(1, 2) for _ in block]
    if d.maybe("strides"):
        d.attributes["strides"] = strides = [d.integer(1, 2) for _ in block]
    if d.maybe("pads"):
        d.attributes["pads"] = pads = [d.integer(0, 1) for _ in range(2 * spatial)]
    count = [
        (n + pads[i] + pads[i + spatial] - ((block[i] - 1) * dilations[i] + 1)) // strides[i] + 1
        for i, n in enumerate(image)
    ]
    d.x(d.array("T", (1, 2 * int(np.prod(block)), int(np.prod(count))), "plain"))
    d.ints(image)
    d.ints(block)


def deformed(d: Draw) -> None:
    kernel = [d.integer(1, 3), d.integer(1, 3)]
    group, offsets = d.attr("group", [1, 2]), d.attr("offset_group", [1, 2])
    c = 2 * d.integer(1, 2)
    size = [d.integer(3, 5), d.integer(3, 5)]
    strides, pads = [1, 1], [0, 0, 0, 0]
    if d.maybe("strides"):
        d.attributes["strides"] = strides = [d.integer(1, 2), d.integer(1, 2)]
    if d.maybe("pads"):
        d.attributes["pads"] = pads = [d.integer(0, 1) for _ in range(4)]
    if d.maybe("kernel_shape"):
        d.attributes["kernel_shape"] = kernel
    out = [(size[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i in range(2)]
    d.x(d.array("T", (1, c, *size), "plain"))
    d.x(d.array("T", (2, c // group, *kernel), "plain"))
    d.x(d.array("T", (1, offsets * kernel[0] * kernel[1] * 2, *out), "plain") / 4)
    if d.maybe("B"):
        d.x(d.array("T", (2,), "plain"))
    else:
        d.skip()
    if d.maybe("mask"):
        d.x(d.array("T", (1, offsets * kernel[0] * kernel[1], *out), "plain"))


GENERATORS = {
    **dict.fromkeys(["AveragePool", "LpPool", "MaxPool"], pool),
    **dict.fromkeys(["GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"], overall),
    **dict.fromkeys(["MaxRoiPool", "RoiAlign"], roi),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxUnpool": unpool,
    "Resize": resize,
    "Upsample": upsample,
    "GridSample": grid_sample,
    "AffineGrid": affine_grid,
    "Col2Im": columns,
    "DeformConv": deformed,
}
