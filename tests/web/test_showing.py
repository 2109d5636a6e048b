"""How values are shown: in words of a reader, and harmless whatever they contain."""

from datetime import UTC, datetime

import pytest

from rookery.web.browser_name import browser_name
from rookery.web.showing import ago, harmless, markdown, money, number, one_line, span, when

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "shown"),
    [(None, "\u2013"), (0, "$0.00"), (0.0004, "$0.0004"), (0.03, "$0.03"), (0.1, "$0.10"), (1234.5, "$1,234.50")],
)
def test_money_has_cents_and_more_digits_only_below_one(given: float | None, shown: str) -> None:
    assert money(given) == shown


def test_times_are_relative_to_now() -> None:
    assert ago("2026-03-01T11:59:58+00:00", NOW) == "now"
    assert ago("2026-03-01T11:57:00+00:00", NOW) == "3 min ago"
    assert ago("2026-03-01T14:30:00", NOW) == "in 2 h"
    assert ago("2026-03-01T19:59:50", NOW) == "in 8 h"
    assert ago(None) == ago("no time") == "\u2013"
    assert 'title="2026-03-01 11:57:00 UTC"' in when("2026-03-01T11:57:00+00:00")
    assert [span(ms) for ms in (850, 4200, 42_000, 300_000, 2 * 86_400_000)] == [
        "850 ms",
        "4.2 s",
        "42 s",
        "5 min",
        "2 d",
    ]


def test_figures_can_be_taken_in() -> None:
    assert [number(each) for each in (950, 12_345, 4_500_000, 0.5)] == ["950", "12.3k", "4.5M", "0.50"]


def test_what_cannot_be_seen_is_spelled_out_and_what_is_long_is_cut() -> None:
    assert harmless("\x1b[31mred\x1b[0m") == "red"
    assert harmless("a\u202eb\x07") == "a\\u202eb\\u0007"
    assert harmless("x" * 50, 10) == "x" * 10 + "\u2026 (50 characters in all)"
    assert one_line("two\nlines\t of it") == "two lines of it"


def test_markdown_of_others_is_text_with_structure_and_no_more() -> None:
    shown = markdown(
        "# Head\n\n<b>raw</b> [bad](javascript:alert(1)) [good](https://a.example) ![p](https://e.example/x.png)"
    )
    assert "<h4>Head</h4>" in shown
    assert "<b>" not in shown
    assert "<img" not in shown
    assert "javascript:" not in "".join(part for part in shown.split('"') if part.startswith("javascript"))
    assert 'href="https://a.example" rel="noopener noreferrer nofollow"' in shown


def test_items_of_a_list_show_boxes() -> None:
    shown = markdown("- [ ] to do\n- [x] done\n\n[ ] no item")
    assert "<li>\u2610 to do</li>" in shown
    assert "<li>\u2611 done</li>" in shown
    assert "<p>[ ] no item</p>" in shown


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Windows"),
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Safari/537.36",
            "Chrome on Linux",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1 Version/19.0 Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Chrome/156.0 Safari/537.36 Edg/156.0", "Edge on macOS"),
        ("curl/8.0", "curl/8.0"),
        ("", ""),
    ],
)
def test_a_browser_is_named_in_words(agent: str, name: str) -> None:
    assert browser_name(agent) == name
