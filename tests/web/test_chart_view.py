"""Charts, and the same figures as a table."""

from rookery.web.chart_view import chart
from rookery.web.showing import NOTHING


def test_the_table_has_every_point_newest_first() -> None:
    drawn = chart("Spend by day", {"Ada": [(1000, 0.5), (2000, 12.0)], "Bob": [(2000, 0.0)]}, unit="usd")
    assert drawn["columns"] == ["Ada", "Bob"]
    assert [row["figures"] for row in drawn["rows"]] == [["$12.00", "$0.00"], ["$0.50", NOTHING]]
    assert drawn["spec"]["series"][0] == {"name": "Ada", "points": [[1000, 0.5], [2000, 12.0]]}


def test_units_have_their_own_words() -> None:
    def shown(value: float, unit: str) -> str:
        return chart("x", {"x": [(0, value)]}, unit=unit)["rows"][0]["figures"][0]  # pyright: ignore[reportArgumentType]

    assert [shown(1500, unit) for unit in ("count", "ms", "percent")] == ["1,500", "1.5 s", "1,500 %"]


def test_names_of_others_are_harmless_and_short() -> None:
    (name,) = chart("x", {"\u202eevil" + "x" * 500: []})["columns"]
    assert "\u202e" not in name
    assert len(name) < 120


def test_a_threshold_is_told_to_the_script() -> None:
    assert "threshold" not in chart("x", {})["spec"]
    assert chart("x", {}, threshold=0)["spec"]["threshold"] == 0
