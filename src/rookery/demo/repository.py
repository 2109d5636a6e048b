"""The project of the demo: a till that splits bills. One of its tests fails: cents are lost."""

import os
import shlex
import subprocess
import sys

from rookery.core.errors import ConfigurationError

README = """# till

Splits a bill among people: `./split 10.00 3` prints one share a line. `./check` runs the tests.
"""
MONEY = '''"""Amounts of money as whole cents, so that nothing is lost by rounding."""


def cents(text: str) -> int:
    """The cents of an amount such as 12.50."""
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int(part.ljust(2, "0") or 0)


def shown(amount: int) -> str:
    """An amount of cents as people write it."""
    return f"{amount // 100}.{amount % 100:02d}"
'''
BILL = '''"""Splitting a bill."""


def split(total: int, people: int) -> list[int]:
    """What each of so many people pays of a total of cents."""
    if people < 1:
        raise ValueError("nobody is there to pay")
    return [total // people] * people
'''
MAIN = '''"""`./split AMOUNT PEOPLE`."""

import sys

from till.bill import split
from till.money import cents, shown

print("\\n".join(shown(share) for share in split(cents(sys.argv[1]), int(sys.argv[2]))))
'''
TEST_MONEY = """import unittest

from till.money import cents, shown


class Money(unittest.TestCase):
    def test_an_amount_is_read(self):
        self.assertEqual([cents("12.50"), cents("3"), cents("0.5")], [1250, 300, 50])

    def test_an_amount_is_shown(self):
        self.assertEqual([shown(1250), shown(5)], ["12.50", "0.05"])
"""
TEST_BILL = """import unittest

from till.bill import split


class Bill(unittest.TestCase):
    def test_nobody_cannot_pay(self):
        with self.assertRaises(ValueError):
            split(100, 0)

    def test_equal_shares(self):
        self.assertEqual(split(900, 3), [300, 300, 300])

    def test_nothing_is_lost(self):
        self.assertEqual(sum(split(1000, 3)), 1000)
"""
FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": README,
    "till/__init__.py": '"""A till."""\n',
    "till/__main__.py": MAIN,
    "till/bill.py": BILL,
    "till/money.py": MONEY,
    "tests/__init__.py": "",
    "tests/test_bill.py": TEST_BILL,
    "tests/test_money.py": TEST_MONEY,
}
CHECK = "check"
PROGRAMS = {CHECK: "unittest discover --quiet --top-level-directory .", "split": 'till "$@"'}
"""With the Python that runs the demo: a machine may have no other."""
NOBODY = ("-c", "user.name=Ada", "-c", "user.email=ada@rookery.invalid", "-c", "commit.gpgsign=false")


def make_repository(folder: str) -> None:
    """A repository with one commit on `main`, in a folder that does not exist yet."""
    programs = {
        name: f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -B -m {what}\n" for name, what in PROGRAMS.items()
    }
    for name, text in {**FILES, **programs}.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755 if name in programs else 0o644)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, *NOBODY, "commit", "--quiet", "--no-verify", "--message=A till that splits bills")


def git(folder: str, *words: str) -> str:
    """What git says, undisturbed by what the machine's owner has set for it."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ("git", *words), cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=60
        )
    except FileNotFoundError:
        raise ConfigurationError("git is not installed", hint="agents work in git worktrees: install it") from None
    return done.stdout


def failing_tests(folder: str) -> tuple[int, int]:
    """How many tests the project has in this folder, and how many of them fail."""
    words = (sys.executable, "-B", "-m", "unittest", "discover", "--verbose", "--top-level-directory", ".")
    said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=60).stderr
    ends = [line.rpartition(" ... ")[2] for line in said.splitlines() if " ... " in line]
    return len(ends), len([end for end in ends if end != "ok"])
