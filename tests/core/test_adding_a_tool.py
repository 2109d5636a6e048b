"""Adding a tool is dropping one function into a domain. Everything else follows from it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "rookery"
FUNCTION = '''

@tool(
    title="Count words", effect="read", action="system:read", tier="observe", group="Read", profiles="WJ", default=True,
    inline=True,
)  # fmt: skip
def count_words(ctx: Context, args: NoInput) -> Pong:
    """Count the words of nothing. Use it to see that a function is enough. Returns pong. Counts nothing else."""
    return Pong(status="pong", timestamp="now")
'''
ASK = """
import json
from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.lint import lint
from rookery.plugins import load_domains

registry = load_domains(plugins=False).registry
agent, judge, planner = (
    Actor(kind="agent", tenant="default", subject="a", project="p", profile=profile)
    for profile in (None, "judge", "planner")
)
tool = registry.require("count_words")
print(json.dumps({
    "listed": [found.name for found in registry.listed(agent)],
    "decided": [decide(actor, tool).outcome for actor in (agent, judge, planner)],
    "faults": lint(tool), "domain": tool.domain,
}))
"""


def run(copy: Path, *arguments: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(copy.parent), "ROOKERY_HOME": str(copy.parent / "home")}
    done = subprocess.run(
        [sys.executable, *arguments], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def digests(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.py")}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of our source."""
    place = tmp_path / "lib" / "rookery"
    shutil.copytree(SOURCE, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def drop_in(copy: Path) -> None:
    with (copy / "domains" / "system" / "tools.py").open("a", encoding="utf-8") as file:
        file.write(FUNCTION)


def test_a_function_in_a_domain_is_listed_and_decided_with_no_other_file_touched(copy: Path) -> None:
    before = digests(copy)
    drop_in(copy)
    seen = json.loads(run(copy, "-c", ASK))
    assert "count_words" in seen["listed"]
    assert seen["decided"] == ["allow", "allow", "deny"]
    assert (seen["faults"], seen["domain"]) == ([], "system")
    changed = {path for path, _ in before.items() ^ digests(copy).items()}
    assert changed == {str(copy / "domains" / "system" / "tools.py")}


def test_the_function_is_in_the_command_line_and_the_docs(copy: Path) -> None:
    drop_in(copy)
    listed = json.loads(run(copy, "-m", "rookery.entry", "tools", "--json"))
    mine = next(entry for entry in listed if entry["name"] == "count_words")
    assert (mine["domain"], mine["effect"], mine["tier"]) == ("system", "read", "observe")
    assert mine["tokens"] > 0
    assert "count_words" in run(copy, "-m", "rookery.entry", "tools", "--markdown")
    assert json.loads(run(copy, "-m", "rookery.entry", "call", "count_words", "{}"))["status"] == "pong"
