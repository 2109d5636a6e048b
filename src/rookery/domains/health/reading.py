"""What the commands of a project have said, in numbers. Pure: the output and the exit code in, a count out."""

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, cast

SUMMARY_LINES = 30
JSON_TRIES = 20
_BEGINS = re.compile(r"^[\[{]", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERRORS = re.compile(r"\b(\d{1,9})\s+(?:previous\s+)?errors?\b", re.IGNORECASE)
_ERROR_LINE = re.compile(r"\berror(?:\[\w+\])?:|\berror TS\d+|: error\b", re.IGNORECASE)
_FAILED = re.compile(r"\b(\d{1,9})\s+(?:fail(?:ed|ing|ures?|s)?|errors?)\b", re.IGNORECASE)
_FAILED_AFTER = re.compile(
    r"\b(?<!expected )(?:fail(?:ed|ures?|s)?|errors?)\s*[=:]\s*(\d{1,9})\b|^\W*fail\s+(\d{1,9})$", re.IGNORECASE
)
_FAILED_LINE = re.compile(r"^\s*(?:--- FAIL:|not ok \d)", re.MULTILINE)
_COMPLAINT = re.compile(r"npm err!|(?:npm error|error|fatal|traceback)\b", re.IGNORECASE)
# A package and its version begin the line, whatever a table draws around them: `requests 2.0`, `* rails (newest 7.1`,
# `│ @scope/a │ 1.0`. A version has a dot, or another one after it, and is no time and no size. Nothing is tried twice.
_PACKAGE = re.compile(
    r"(?:\[info\])?[^\w@]{0,40}+@?\d{0,3}[a-z_][\w./@:>+-]{0,213}(?<=\w)"
    r"[^\w]{1,80}+(?:(?:missing|newest|latest|current|installed)[^\w]{1,80}+)?"
    r"(?!\d+(?:\.\d+)?\s?(?:m?s|sec\w*|min\w*|[kmg]i?b)\b)"
    r"v?\d(?:[\w+-]{0,40}\.\w|\w{0,40}[\s│|]{1,80}+v?\d)",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\[notice\]|warning:|npm (?:warn|notice)\b", re.IGNORECASE)


def lines_of(output: str) -> list[str]:
    """The lines of an output, without colours and without empty ones."""
    return [line.strip() for line in _COLOUR.sub("", output).splitlines() if line.strip()]


def type_errors(output: str, exit_code: int) -> int:
    """How many errors a type checker has found: what its summary says, else the lines that are one.

    If it failed without a word of it, that is one.
    """
    lines = lines_of(output)
    said = [int(number) for line in lines[-SUMMARY_LINES:] for number in _ERRORS.findall(line)]
    if exit_code == 0:
        return max(said, default=0)
    return max([*said, 1]) if said else max(sum(bool(_ERROR_LINE.search(line)) for line in lines), 1)


def failed_tests(output: str, exit_code: int) -> int:
    """How many tests have failed: the most that one of the last thirty lines says, or the lines that say it of one.

    A suite that failed has at least one, whatever it says. One that says so has failed: a pipe swallows exit codes.
    """
    lines = lines_of(output)
    said = max((_failed(line) for line in lines[-SUMMARY_LINES:]), default=0)
    said = said or len(_FAILED_LINE.findall("\n".join(lines)))
    return said if exit_code == 0 else max(said, 1)


def outdated(output: str, exit_code: int) -> int | None:
    """How many dependencies are listed, as JSON or one a line, its name and then its version; None if it failed.

    Some list with exit code 1, so that alone is no failure.
    """
    lines = lines_of(output)
    listed = _json(lines)
    if listed is not None:
        return _entries(listed)
    named = [line for line in lines if _PACKAGE.match(line) and not _REMARK.match(line)]
    if exit_code == 0:
        return len(named)
    complains = any(_COMPLAINT.match(line) for line in lines)
    return len(named) if exit_code == 1 and named and not complains else None


def _failed(line: str) -> int:
    """The numbers of one line together: `3 failed, 2 errors` are five."""
    before = [int(number) for number in _FAILED.findall(line)]
    after = [int(first or second) for first, second in _FAILED_AFTER.findall(line)]
    return max(sum(before), sum(after))


def _json(lines: Sequence[str]) -> list[Any] | dict[str, Any] | None:
    """The first list or object that begins a line; remarks of the program may stand around it."""
    decoder, text = json.JSONDecoder(), "\n".join(lines)
    # Each try may read to the end, so there are few.
    for start in islice(_BEGINS.finditer(text), JSON_TRIES):
        try:
            found, _ = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        return cast("list[Any] | dict[str, Any]", found)
    return None


def _entries(listed: list[Any] | dict[str, Any]) -> int | None:
    """The length of a list, of the lists in an object, or of an object by package; None for one that tells an error."""
    if isinstance(listed, list):
        return len(listed)
    if list(listed) == ["error"]:
        return None
    inner = [len(cast("list[Any]", value)) for value in listed.values() if isinstance(value, list)]
    return sum(inner) if inner else len(listed)
