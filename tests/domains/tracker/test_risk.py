"""The risk of a change: its three properties over any diff and any thresholds, and examples computed by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.diff import DiffStats, parse_diff
from rookery.domains.tracker.project_store import Thresholds
from rookery.domains.tracker.risk import GateResult, Risk, level_of, matching, risk_of

SENSITIVE = ("server/database/*", ".env*")


def changed(path: str, added: int, deleted: int = 0) -> str:
    """A file's part of a diff, with so many lines."""
    head = f"diff --git a/{path} b/{path}\n"
    if not added + deleted:
        return head + "old mode 100644\nnew mode 100755\n"
    hunk = f"@@ -1,{deleted} +1,{added} @@\n" + "-old\n" * deleted + "+new\n" * added
    return f"{head}--- a/{path}\n+++ b/{path}\n{hunk}"


def diff(*files: tuple[str, int]) -> DiffStats:
    """A diff with so many added lines of each file."""
    return parse_diff("".join(changed(path, added) for path, added in files))


def spread(lines: int, files: int, folder: str = "docs") -> DiffStats:
    """So many lines over so many files of prose."""
    each = [lines // files + (number < lines % files) for number in range(files)]
    return parse_diff("".join(changed(f"{folder}/{number}.md", added) for number, added in enumerate(each)))


def gate(exit_code: int = 0, *, required: bool = True, label: str = "Tests") -> GateResult:
    return GateResult("make test", label, exit_code, "", required)


def risk(stats: DiffStats, *gates: GateResult, sensitive: tuple[str, ...] = SENSITIVE) -> Risk:
    return risk_of(stats, Thresholds(), sensitive, gates)


PATHS = st.sampled_from(
    [
        "src/a.py",
        "src/b.go",
        "tests/test_a.py",
        "package-lock.json",
        "README.md",
        "server/database/x.ts",
        ".env",
        "c.rs",
    ]
)
COUNTS = st.integers(0, 12)
DIFFS = st.dictionaries(PATHS, st.tuples(COUNTS, COUNTS), min_size=1).map(
    lambda files: parse_diff("".join(changed(path, *lines) for path, lines in files.items()))
)
PATTERNS = st.sets(st.sampled_from(["server/database/*", ".env*", "*.rs", "src/", "!src/a.py", "**/x.ts"])).map(tuple)
GATES = st.lists(st.builds(gate, st.integers(-1, 2), required=st.booleans()), max_size=4)


@st.composite
def thresholds(draw: st.DrawFn) -> Thresholds:
    low_lines, low_files = draw(st.integers(0, 60)), draw(st.integers(0, 8))
    return Thresholds(
        low_lines=low_lines,
        high_lines=low_lines + draw(st.integers(1, 60)),
        low_files=low_files,
        high_files=low_files + draw(st.integers(1, 8)),
    )


def is_sensitive(stats: DiffStats, patterns: tuple[str, ...]) -> bool:
    return bool(matching(patterns, [file.path for file in stats.files]))


@settings(max_examples=400, deadline=None)
@given(DIFFS, thresholds(), PATTERNS, GATES)
def test_the_three_properties_hold_for_any_change_and_any_thresholds(
    stats: DiffStats, limits: Thresholds, patterns: tuple[str, ...], gates: list[GateResult]
) -> None:
    found = risk_of(stats, limits, patterns, gates)
    assert 0 <= found.score <= 100
    assert found.level == level_of(found.score)
    assert found.reasons
    if any(each.required and each.failed for each in gates):
        assert (found.score, found.level) == (100, "high")
        return
    lines, files, sensitive = stats.changed_lines, len(stats.files), is_sensitive(stats, patterns)
    if lines <= limits.low_lines and files <= limits.low_files and not sensitive:
        assert found.level == "low"
    if lines >= limits.high_lines or files >= limits.high_files:
        assert found.level == "high"
    if sensitive:
        assert found.level != "low"


@settings(max_examples=200, deadline=None)
@given(DIFFS, thresholds(), PATTERNS, GATES)
def test_more_of_anything_is_never_less_risky(
    stats: DiffStats, limits: Thresholds, patterns: tuple[str, ...], gates: list[GateResult]
) -> None:
    score = risk_of(stats, limits, patterns, gates).score
    longer = parse_diff("".join(changed(file.path, file.added + 5, file.deleted) for file in stats.files))
    assert risk_of(longer, limits, patterns, gates).score >= score
    assert risk_of(stats, limits, [*patterns, "src/a.py"], gates).score >= score
    assert risk_of(stats, limits, patterns, [*gates, gate(1, required=False)]).score >= score
    assert risk_of(stats, limits, patterns, [*gates, gate(0)]).score == score


@pytest.mark.parametrize(
    ("lines", "files", "score", "level"),
    [
        (1, 1, 0, "low"),
        (50, 3, 0, "low"),
        (275, 3, 35, "medium"),  # half of the lines: 70 · 0.5
        (50, 9, 35, "medium"),  # half of the files
        (275, 9, 40, "medium"),  # half of both: 70 · 0.5 + 10 · 0.5
        (230, 3, 28, "low"),  # 70 · 0.4
        (499, 3, 70, "high"),  # 70 · 0.99778 = 69.84
        (500, 3, 70, "high"),
        (50, 15, 70, "high"),
        (500, 9, 75, "high"),
        (5000, 15, 80, "high"),
    ],
)
def test_size_counts_lines_and_files(lines: int, files: int, score: int, level: str) -> None:
    found = risk(spread(lines, files))
    assert (found.score, found.level) == (score, level)
    assert f"{lines} changed lines in {files} files" in found.reasons[0]


def test_lock_files_count_as_files_and_not_as_lines() -> None:
    assert risk(diff(("yarn.lock", 5000))).score == 0
    locks = [(f"{number}/yarn.lock", 5000) for number in range(9)]
    assert risk(diff(*locks)).score == 35


def test_sensitive_files_count_thirty_and_five_for_each_further_up_to_forty_five() -> None:
    for count, points in ((1, 30), (2, 35), (3, 40)):
        assert risk(spread(3, count, "server/database")).score == points
    for count in (4, 6):
        found = risk_of(spread(6, count, "server/database"), Thresholds(low_files=8), SENSITIVE, [])
        assert (found.score, found.level) == (45, "medium")
    assert "server/database/0.md" in risk(spread(1, 1, "server/database")).reasons[1]


def test_what_is_moved_out_of_a_sensitive_place_is_sensitive() -> None:
    moved = parse_diff("diff --git a/.env b/docs.md\nrename from .env\nrename to docs.md\n")
    assert risk(moved).score == 30


def test_patterns_are_those_of_gitignore() -> None:
    paths = ["server/database/x.ts", "server/database/y/z.ts", ".env", "web/.env.local", "server/api.ts", "a/secrets/k"]
    assert matching(SENSITIVE, paths) == {*paths[:4]}
    assert matching(["secrets/"], paths) == {"a/secrets/k"}
    assert matching(["/server/**", "!/server/api.ts"], paths) == {*paths[:2]}
    assert matching(["# a comment", ""], paths) == set()
    assert matching((), paths) == set()


def test_a_path_too_long_to_be_matched_counts_as_sensitive() -> None:
    long = "x/" * 200 + "y"
    assert matching(["z"], [long]) == {long}
    assert matching((), [long]) == set()


@pytest.mark.parametrize("pattern", ["!", "[[-?]", "[a[b]", "[a--b]", "*a*a*a*b", "a/**/b/**/c/**/*.d"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationFailed, match="not a path pattern"):
        matching(["fine/*", pattern], [])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("*?[]!/\\.-ab^# &|~", max_size=10), max_size=3), st.lists(st.text("ab/.[", min_size=1)))
def test_no_pattern_breaks_it(patterns: list[str], paths: list[str]) -> None:
    try:
        assert matching(patterns, paths) <= set(paths)
    except ValidationFailed as refused:
        assert refused.hint  # noqa: PT017


def test_a_failed_required_gate_is_all_that_counts() -> None:
    found = risk(diff(("README.md", 1)), gate(0), gate(2, label="Build"))
    assert (found.score, found.level) == (100, "high")
    assert "Build" in found.reasons[0]
    assert risk(diff(("README.md", 1)), gate(0)).score == 0


def test_optional_gates_and_missing_tests_stay_below_medium_together() -> None:
    failed = gate(1, required=False, label="Lint")
    assert risk(diff(("README.md", 1)), failed, failed).score == 20
    assert risk(diff(("src/a.py", 1))).score == 10
    assert risk(diff(("src/a.py", 1), ("tests/test_a.py", 1))).score == 0
    both = risk(diff(("src/a.py", 1)), failed)
    assert (both.score, both.level) == (29, "low")
    assert risk(diff(("server/database/a.py", 1)), failed).score == 59


def test_the_score_ends_at_a_hundred() -> None:
    everything = spread(5000, 20, "server/database")
    assert risk(everything, gate(1, required=False)).score == 100
