"""What commands have said, in numbers: the summaries of well-known programs, and anything else that may come."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.health.reading import failed_tests, outdated, type_errors

PIP = """Package  Version Latest Type
-------- ------- ------ -----
requests 2.0     2.32   wheel
click    7.0     8.2    wheel
[notice] A new release of pip is available: 24.0 -> 25.0
"""
PIP_JSON = 'WARNING: cache disabled\n[{"name": "a", "version": "1"}, {"name": "b"}]\n[notice] A new release of pip\n'
NPM = "Package  Current  Wanted  Latest  Location\nlodash   4.0.0    4.17.21 4.17.21 node_modules/lodash\n"
NPM_JSON = '{\n  "lodash": {"current": "4.0.0"},\n  "react": {"current": "17"}\n}'
TSC = "src/a.ts(1,7): error TS2322: Type 'string'.\nsrc/b.ts(2,1): error TS2304: Cannot find name 'x'.\n"
RUST = "error[E0308]: mismatched types\nerror: could not compile `shop` (lib) due to 3 previous errors\n"


@pytest.mark.parametrize(
    ("output", "exit_code", "expected"),
    [
        ("0 errors, 2 warnings, 0 informations", 0, 0),
        ("Success: no issues found in 12 source files", 0, 0),
        ("/a.py:1:1 - error: bad\n3 errors, 1 warning, 0 informations", 1, 3),
        ("a.py:1: error: bad  [assignment]\nFound 1 error in 1 file (checked 2 source files)", 1, 1),
        (TSC, 2, 2),
        ("\x1b[91merror\x1b[0m\nFound \x1b[31m12\x1b[0m errors in 2 files.", 2, 12),
        (RUST, 101, 3),
        ("✖ 3 problems (2 errors, 1 warning)\n  1 error and 0 warnings potentially fixable", 1, 2),
        # Nothing is understood, but it failed.
        ("Segmentation ahead", 3, 1),
        ("0 errors", 1, 1),
        ("", 1, 1),
        # A pipe swallowed the exit code.
        ("Found 4 errors.", 0, 4),
        ("error: this is only a word", 0, 0),
    ],
)
def test_the_errors_of_type_checkers(output: str, exit_code: int, expected: int) -> None:
    assert type_errors(output, exit_code) == expected


@pytest.mark.parametrize(
    ("output", "exit_code", "expected"),
    [
        ("==== 20 passed in 0.1s ====", 0, 0),
        ("FAILED tests/test_a.py::test_x\n=== 3 failed, 10 passed, 1 xfailed, 2 errors in 1.2s ===", 1, 5),
        ("Test Suites: 1 failed, 3 passed\nTests:       2 failed, 7 passed, 9 total", 1, 2),
        (" Tests  4 failed | 3 passed (7)", 1, 4),
        (" 12 pass\n 3 fail\nRan 15 tests", 1, 3),
        ("  10 passing\n  2 failing", 2, 2),
        ("Ran 3 tests in 0.1s\n\nFAILED (failures=2, errors=1)", 1, 3),
        ("test result: FAILED. 3 passed; 2 failed; 0 ignored", 101, 2),
        ("Tests: 10, Assertions: 20, Failures: 2, Errors: 1.", 1, 3),
        ("--- FAIL: TestLogin (0.00s)\n--- FAIL: TestCart (0.00s)\nFAIL\nexit status 1", 1, 2),
        ("# tests 4\n# pass 1\n# fail 3", 1, 3),
        ("TAP version 13\nok 1 - a\nnot ok 2 - b\n1..2", 1, 1),
        # What was expected to fail has not failed.
        ("Ran 9 tests in 0.1s\n\nOK (skipped=1, expected failures=2)", 0, 0),
        ("FAILED (failures=1, skipped=1, expected failures=2)", 1, 1),
        # Non-zero is at least one, whatever is said.
        ("everything is fine", 1, 1),
        ("0 failed, 3 passed", 1, 1),
        ("", 137, 1),
        # Only the last thirty lines are the summary.
        ("9 failed attempts to connect\n" + "ok\n" * 30, 0, 0),
        ("2 failed, 3 passed", 0, 2),
    ],
)
def test_the_failures_of_test_runners(output: str, exit_code: int, expected: int) -> None:
    assert failed_tests(output, exit_code) == expected


@pytest.mark.parametrize(
    ("output", "exit_code", "expected"),
    [
        ("npm ERR! code ENOTFOUND\nnpm ERR! errno 2", 1, None),
        ('{"error": {"code": "ENOTFOUND", "summary": "no network"}}', 1, None),
        ("Traceback (most recent call last):\n  line 3", 1, None),
        ("a 1.0 2.0", 2, None),
        ("", 1, None),
        ("", 0, 0),
        ("All dependencies are up to date, yay!", 0, 0),
        ("yarn outdated v1.22.19\nDone in 0.50s.", 0, 0),
        ("yarn outdated v1.22.19\nPackage Current Wanted Latest\nlodash 4.0.0 4.1.0 5.0.0\nDone in 0.50s.", 1, 1),
        ("All packages are up to date (checked 12).", 0, 0),
        ("Resolved 120 packages in 1.20s\nTook 3.5 seconds\nFetched 1.2 MB\n12:00:01.123 done", 0, 0),
        (PIP, 0, 2),
        (PIP_JSON, 0, 2),
        (NPM, 1, 1),
        (NPM_JSON, 1, 2),
        ("[]", 0, 0),
        ("{}", 0, 0),
        ('{"installed": [{"name": "a/b"}, {"name": "c/d"}]}', 0, 2),
    ],
)
def test_what_lists_outdated_dependencies(output: str, exit_code: int, expected: int | None) -> None:
    assert outdated(output, exit_code) == expected


@pytest.mark.parametrize(
    "line",
    [
        "requests==2.0",
        "pywin32 306 310 wheel",
        "lodash  MISSING  4.17.21  4.17.21",
        "│ @scope/a │ 1.0.0 │ 2.0.0 │",
        "├── click v7.0 (latest: v8.1)",
        "  * rails (newest 7.0.1, installed 6.0)",
        "golang.org/x/text v0.3.0 [v0.3.7]",
        "   > Newtonsoft.Json   12.0.1  12.0.1  13.0.1",
        " express  ^4.0.0  →  ^5.0.0",
        "[INFO]   org.slf4j:slf4j-api ............... 1.7.0 -> 2.0.0",
        " - com.google.guava:guava [30.0-jre -> 33.0-jre]",
        "git (2.30) < 2.31",
    ],
)
def test_a_line_that_begins_with_a_package_and_its_version_is_one(line: str) -> None:
    assert outdated(line, 0) == 1


WORDS = st.lists(
    st.sampled_from(["3 failed", "2 errors", "errors=9", "[", "{", "1.0", "\n", " ", "error:", "\x1b[1m", "9" * 30])
    | st.text(max_size=20),
    max_size=40,
).map(" ".join)


@given(WORDS, st.integers(0, 255))
def test_whatever_is_said_gives_a_count_that_agrees_with_the_exit_code(output: str, exit_code: int) -> None:
    least = 0 if exit_code == 0 else 1
    assert type_errors(output, exit_code) >= least
    assert failed_tests(output, exit_code) >= least
    listed = outdated(output, exit_code)
    assert listed is None or listed >= 0


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_a_summary_is_read_back(failed: int, passed: int) -> None:
    assert failed_tests(f"{failed} failed, {passed} passed in 3.14s", int(failed > 0)) == failed


@pytest.mark.parametrize(
    "line", ["[", "[\n", "{\n", "1 ", "fail ", "1 failed ", "\x1b[", "[1,\n", "a.", "a" + "." * 300 + "\n"]
)
def test_a_million_of_anything_is_read_in_good_time(line: str) -> None:
    output, started = line * (1_000_000 // len(line)), time.monotonic()
    for read in (type_errors, failed_tests, outdated):
        read(output, 1)
    assert time.monotonic() - started < 20
