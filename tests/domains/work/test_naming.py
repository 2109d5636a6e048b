"""What branches and folders of tasks are called."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.work.naming import base36, branch_name, slug, worktree_folder


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ""),
        ("!!!", ""),
        ("Fix the Login", "fix-the-login"),
        ("--force -rf ../..", "force-rf"),
        ("ünïcode only", "n-code-only"),
        ("a" * 60, "a" * 40),
        ("x" * 39 + " tail", "x" * 39),
    ],
)
def test_a_slug_has_letters_digits_and_single_dashes(text: str, wanted: str) -> None:
    assert slug(text) == wanted


def test_a_branch_says_who_what_and_when() -> None:
    assert branch_name("Ada", "Fix: the login!", 36**2, "0a1b2c") == "agent/ada/fix-the-login-100-0a1b2c"
    assert branch_name("...", "???", 0, "ffffff") == "agent/agent/task-0-ffffff"


@given(st.text(max_size=300), st.text(min_size=1, max_size=64), st.integers(0, 2**45))
def test_every_branch_is_a_name_that_git_takes_and_no_option(description: str, agent: str, at_ms: int) -> None:
    name = branch_name(agent, description, at_ms, "0a1b2c")
    assert all(part and part[0].isalnum() and part.isascii() for part in name.split("/"))
    assert int(name.split("-")[-2], 36) == at_ms


def test_git_agrees_with_an_awkward_one() -> None:
    name = branch_name("A.lock", "../x.lock @{1} \\ -- ~^:", 1_700_000_000_000, "0a1b2c")
    assert subprocess.run(["git", "check-ref-format", "--branch", name], check=False, timeout=30).returncode == 0


def test_numbers_are_written_in_base_36() -> None:
    assert [base36(number) for number in (0, 35, 36, 1295)] == ["0", "z", "10", "zz"]


def test_working_trees_are_beside_the_project_unless_a_folder_is_set() -> None:
    assert worktree_folder("", "/srv/code/shop", "wtk-1") == "/srv/code/.rookery-worktrees/wtk-1"
    assert worktree_folder("/var/trees", "/srv/code/shop", "wtk-1") == "/var/trees/wtk-1"
