"""The front, against its definition."""

from hypothesis import given
from hypothesis import strategies as st

from onnxhw.explore.front import dominates, front

POINTS = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=30)


def test_to_dominate_is_to_be_nowhere_worse_and_somewhere_better():
    assert dominates((1, 2), (1, 3))
    assert not dominates((1, 2), (1, 2))
    assert not dominates((1, 4), (2, 3))


@given(POINTS)
def test_the_front_is_what_nothing_dominates_once_each(points):
    wanted = sorted({one for one in points if not any(dominates(other, one) for other in points)})
    assert front([(point, point) for point in points]) == wanted


def test_of_equal_points_the_first_counts():
    assert front([((1.0, 2.0), "first"), ((1.0, 2.0), "second"), ((0.0, 3.0), "other")]) == ["other", "first"]
