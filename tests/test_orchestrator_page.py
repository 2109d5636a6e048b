"""docs/orchestrator.md: it names what there is, and its examples can be read."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click
import pytest

from rookery.cli.main import rookery
from rookery.domains.tracker.pipeline import MAX_REJECTIONS
from rookery.engine.dispatches import Outcome
from rookery.engine.project_settings import ROLES
from rookery.engine.retrying import MAX_ROUNDS
from rookery.engine.standing import Code
from rookery.runtimes.script import read_file

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "orchestrator.md").read_text(encoding="utf-8")


def part(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> str:
    return "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))


def command_of(words: Sequence[str]) -> tuple[click.Command, Sequence[str]]:
    """The command that the words name, and what is left of them."""
    found: click.Command = rookery
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        inner = found.get_command(click.Context(found), words[0])
        assert inner is not None, words
        found, words = inner, words[1:]
    return found, words


def test_every_reason_to_wait_is_explained_and_no_other() -> None:
    told = re.findall(r"`(\w+)`", first_cells(part("Why an issue waits")))
    assert sorted(told) == sorted(get_args(Code))


def test_every_end_of_an_attempt_is_explained_and_no_other() -> None:
    cells = first_cells(part("An attempt"))
    told = {word for word in re.findall(r"\w+", cells) if word not in ("ended", "as")}
    assert told == set(get_args(Outcome))


@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_named_in_the_order_in_which_it_is_dispatched(role: str) -> None:
    assert role in part("An issue")
    order = part("A tick").partition("by role (")[2].partition(")")[0]
    assert tuple(re.findall(r"\w+", order)) == ROLES


LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("line", [line for line in LINES if "rookery " in line])
def test_every_command_is_there_with_its_options(line: str) -> None:
    command, rest = command_of(line.partition("#")[0].partition("rookery ")[2].split())
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    assert {word for word in rest if word.startswith("--")} <= known


def test_every_option_in_the_text_is_one_of_some_command() -> None:
    told = set(re.findall(r"`(--[a-z-]+)", PAGE))
    commands = [command_of(words.split())[0] for words in ("orchestrator configure", "merge", "stdio")]
    known = {option for each in commands for param in each.params for option in param.opts}
    assert told - known == set()


def test_the_script_can_be_read() -> None:
    (script,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert [step.word for step in read_file(script)] == ["write", "run", "call"]


def test_the_picture_is_there_and_tells_its_title() -> None:
    (name,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)
    root = ElementTree.parse(DOCS / name).getroot()
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_every_page_that_it_leads_to_is_there() -> None:
    pages = re.findall(r"\]\(([\w-]+\.md)", PAGE)
    assert pages
    assert [page for page in pages if not (DOCS / page).exists()] == []


def test_how_often_work_may_be_sent_back_is_as_it_is() -> None:
    told = " ".join(part("An issue").split())
    assert f"{MAX_REJECTIONS} rejections of an artifact block the issue, and so do {MAX_ROUNDS} rounds" in told
