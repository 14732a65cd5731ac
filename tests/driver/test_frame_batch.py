"""Frames encoded together are the frames encoded one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onnxhw.driver.frame_batch import encode_frames
from onnxhw.driver.framing import Frame
from onnxhw.isa.link import Header

HEADERS = st.builds(Header, *[st.sampled_from([0, 1, 255])] * 3, st.sampled_from([0, 0x123456]), st.just(1), st.just(0))
SHORT = st.binary(max_size=20)
LONG = st.tuples(st.sampled_from([235, 240, 241, 242, 243, 253, 254, 255, 500]), st.binary(max_size=4)).map(
    lambda parts: b"\x07" * parts[0] + parts[1]
)
FRAMES = st.builds(Frame, HEADERS, st.one_of(SHORT, LONG))


@given(st.lists(FRAMES, min_size=1, max_size=6))
def test_the_same_bytes(frames):
    assert encode_frames(frames) == [frame.encode() for frame in frames]


def test_sparse_tensors():
    """What most frames of a run are: words with many zero bytes, all of one length."""
    random = np.random.default_rng(0)
    data = random.integers(0, 256, (40, 512)).astype(np.uint8) * (random.random((40, 512)) < 0.25)
    frames = [Frame(Header(0x23, i, 1, 128 * i, 128, 9), row.tobytes()) for i, row in enumerate(data)]
    assert encode_frames(frames) == [frame.encode() for frame in frames]

