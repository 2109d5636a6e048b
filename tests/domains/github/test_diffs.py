"""Pages of a diff: whatever the text is, they make it up again."""

from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.github.diffs import from_files, page_of

LINES = st.lists(st.sampled_from(["diff --git a/x b/x", "+y", "", "-" + "z" * 50, "ä\u2028", "\ud83d"]), max_size=60)


@given(LINES.map("\n".join), st.integers(1, 80))
def test_pages_make_up_the_diff_and_none_is_empty_or_too_long(diff: str, size: int) -> None:
    parts: list[str] = []
    cursor = None
    while cursor is not None or not parts:
        part, cursor = page_of(diff, cursor, size)
        parts.append(part)
        assert len(part) <= size
        assert part or not diff
    assert "".join(parts) == diff


def test_a_page_ends_between_files_else_between_lines_else_anywhere() -> None:
    files = "diff --git a\n+1\n" + "diff --git b\n+2\n"
    assert page_of(files, None, 30)[0] == "diff --git a\n+1\n"
    assert page_of("+aaaa\n+bbbb\n+cccc\n", None, 14)[0] == "+aaaa\n+bbbb\n"
    assert page_of("x" * 30, None, 14)[0] == "x" * 14


def test_half_of_a_surrogate_pair_in_a_file_stays_out_of_the_diff() -> None:
    diff = from_files([{"filename": "a\ud800.py", "status": "modified", "patch": "+\ud83d x\n+\ud83d\ude00"}])
    assert diff.encode().decode() == diff
    assert diff.endswith("+? x\n+??\n")
