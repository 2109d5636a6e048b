"""How risky a change is, from 0 to 100. Pure.

Whatever the thresholds: a change below both low ones that touches nothing sensitive is low, one that reaches either
high one is high, and one that touches something sensitive is at least medium.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.diff import DiffStats
from rookery.domains.tracker.project_store import Thresholds

Level = Literal["low", "medium", "high"]
MEDIUM = 30
HIGH = 70
SENSITIVE = 30
SENSITIVE_FURTHER = 5
SENSITIVE_AT_MOST = 45
OPTIONAL_GATE = 20
NO_TESTS = 10
# Together they stay below medium, or a tiny change could not be low.
GATES_AND_TESTS_AT_MOST = MEDIUM - 1
# Each wildcard multiplies the time by the length of a path, and agents choose the paths.
MAX_WILDCARDS = 3
MAX_MATCHED = 256
_WILDCARD = re.compile(r"\*+")
# Python reserves these inside of brackets and warns; .gitignore has no use for them.
_SET_OPERATION = re.compile(r"\[[!^]?\]?[^\]]*(?:\[|--|&&|~~|\|\|)")


class GateResult(NamedTuple):
    """What came of one quality gate: 0 is passed."""

    command: str
    label: str
    exit_code: int
    output: str
    required: bool

    @property
    def failed(self) -> bool:
        return self.exit_code != 0


@dataclass(frozen=True, slots=True)
class Risk:
    """The score, its level, and a sentence for each part of it."""

    score: int
    level: Level
    reasons: list[str]


def risk_of(
    stats: DiffStats, thresholds: Thresholds, sensitive_paths: Sequence[str], gates: Sequence[GateResult]
) -> Risk:
    """The risk of a change with these gate results. A required gate that failed makes it 100, whatever else is so."""
    size, reasons = _size(stats, thresholds)
    sensitive, touched = _sensitive(stats, sensitive_paths)
    rest, missing = _gates_and_tests(stats, gates)
    reasons += touched + missing
    broken = [gate.label for gate in gates if gate.required and gate.failed]
    if broken:
        return Risk(100, "high", [f"required gates failed: {_some(broken)} (100)", *reasons])
    score = min(100, math.floor(size + sensitive + rest + 0.5))
    return Risk(score, level_of(score), reasons)


def level_of(score: int) -> Level:
    if score >= HIGH:
        return "high"
    return "medium" if score >= MEDIUM else "low"


def matching(patterns: Sequence[str], paths: Iterable[str]) -> set[str]:
    """The paths that patterns in the manner of .gitignore name; ValidationFailed for a pattern that is none.

    A path that is too long to be matched in reasonable time counts as named by any pattern.
    """
    if not patterns:
        return set()
    # Costs as much to import as a whole small call.
    from pathspec import GitIgnoreSpec

    for pattern in patterns:
        if len(_WILDCARD.findall(pattern)) > MAX_WILDCARDS:
            raise _no_pattern(f"{pattern!r} has more than {MAX_WILDCARDS} wildcards")
        if _SET_OPERATION.search(pattern):
            raise _no_pattern(f"{pattern!r} has brackets within brackets")
    try:
        spec = GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error) as error:
        raise _no_pattern(str(error)) from None
    return {path for path in paths if len(path) > MAX_MATCHED or spec.match_file(path)}


def _no_pattern(why: str) -> ValidationFailed:
    return ValidationFailed(
        f"not a path pattern: {why}"[:300], hint="write it as in .gitignore, if need be as several simpler ones"
    )


def _size(stats: DiffStats, thresholds: Thresholds) -> tuple[float, list[str]]:
    lines, files = stats.changed_lines, len(stats.files)
    by_lines = _ramp(lines, thresholds.low_lines, thresholds.high_lines)
    by_files = _ramp(files, thresholds.low_files, thresholds.high_files)
    size = 70 * max(by_lines, by_files) + 10 * min(by_lines, by_files)
    return size, [f"{lines} changed lines in {files} files ({size:.0f})"]


def _ramp(value: int, low: int, high: int) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _sensitive(stats: DiffStats, patterns: Sequence[str]) -> tuple[int, list[str]]:
    # What is moved away from a sensitive place was there before.
    named = matching(patterns, (path for file in stats.files for path in (file.path, file.old_path) if path))
    touched = [file.path for file in stats.files if file.path in named or file.old_path in named]
    if not touched:
        return 0, []
    points = min(SENSITIVE_AT_MOST, SENSITIVE + SENSITIVE_FURTHER * (len(touched) - 1))
    return points, [f"sensitive files: {_some(touched)} ({points})"]


def _gates_and_tests(stats: DiffStats, gates: Sequence[GateResult]) -> tuple[int, list[str]]:
    points, reasons = 0, list[str]()
    failed = [gate.label for gate in gates if gate.failed and not gate.required]
    if failed:
        points += OPTIONAL_GATE
        reasons.append(f"optional gates failed: {_some(failed)} ({OPTIONAL_GATE})")
    if stats.source_without_tests:
        counted = min(NO_TESTS, GATES_AND_TESTS_AT_MOST - points)
        points += counted
        reasons.append(f"code changed and no test did ({counted})")
    return points, reasons


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(name[:200] for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
