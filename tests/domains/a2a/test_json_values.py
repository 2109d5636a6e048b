"""How much there is in JSON that others have sent."""

from typing import Any

import pytest

from rookery.domains.a2a.json_values import has_more_values, is_modest


@pytest.mark.parametrize(
    ("found", "values"),
    [
        (None, 1),
        ("a long text" * 1000, 1),
        ({}, 1),
        ([[], [], [{}]], 5),
        ({"a": {"b": [1, 2, 3]}, "c": "d"}, 7),
    ],
)
def test_every_value_counts_once_wherever_it_is(found: Any, values: int) -> None:
    assert has_more_values(found, values - 1)
    assert not has_more_values(found, values)


def test_depth_is_no_way_around() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert has_more_values(deep, 10_000)
    assert not has_more_values(deep, 10_001)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_left_to_whoever_reads_it(text: bytes) -> None:
    assert is_modest(text, 0)


def test_what_has_more_is_not_modest() -> None:
    assert is_modest(b'[{"a":1}]', 3)
    assert not is_modest(b'[{"a":1}]', 2)
