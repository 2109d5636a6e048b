"""Agents that play a file of the owner's: which one, and what its placeholders stand for."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.lifecycle.run_store import NewRun, Runs
from rookery.lifecycle.sessions import Outcome
from rookery.runtimes.placeholders import filled
from rookery.runtimes.script import BadScript
from rookery.runtimes.scripted import Scripted
from rookery.runtimes.scripts_folder import file_names
from rookery.sessions.ending import ending_of
from rookery.sessions.port import Agent, Launch, Permission
from tests.domains.work.workshop import git, make_repository
from tests.platform_fixtures import Fleet
from tests.runtimes.playing import Person, turn

pytestmark = pytest.mark.anyio


class Stage:
    """A platform whose scripts are in a folder, and agents that begin there."""

    def __init__(self, fleet: Fleet, scripts: Path) -> None:
        self.fleet = fleet
        self.scripts = scripts

    def write(self, name: str, text: str) -> None:
        path = self.scripts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, actor: Actor) -> str:
        new = NewRun(project_id=actor.project or "", issue_id=actor.issue, profile=actor.profile, phase=actor.phase)
        return self.fleet.platform.database.direct(lambda tx: Runs(tx, actor.tenant).start(new), write=True).id

    async def agent(self, person: Person | None = None, cwd: Path | None = None, **binding: Any) -> Agent:
        phase = "research" if "issue" in binding else None
        actor = replace(self.fleet.actor(session="ses-1", **binding), phase=phase)
        actor = replace(actor, run=self.run(actor))
        launch = Launch(session="ses-1", actor=actor, mode=actor.mode, cwd=None if cwd is None else str(cwd))
        return await Scripted(self.fleet.platform).start(launch, person or Person())

    async def play(self, prompt: str = "do it", **how: Any) -> Outcome:
        return ending_of((await turn(await self.agent(**how), prompt))[-1].data).outcome


@pytest.fixture
def stage(tmp_path: Path, prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Stage:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    return Stage(make_fleet(prepared_database_url, scripts=str(scripts)), scripts)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("- dance: 1", "no such instruction: !dance"),
        ("- say: $(weather)", "$(weather) stands for nothing; known are"),
        ("- say: $(payload.files)", "$(payload.files) leads to nothing: there is no files"),
        ("- say: $(told fence)", "the prompt tells no fence"),
        ("- say: $(sha256 none.md)", "No such file"),
        ("- say: $(branch", "$(branch is not closed"),
        ("- each: 7", "each needs a list, and what to do for each of it"),
        ("- run: exit 3", "exit 3: exit code 3"),
        ("- call: {tool: create_agent, must: true}", "create_agent was refused: PERMISSION_DENIED"),
        ("say: hello", "researcher.yaml: no list of steps, each with one word"),
        ("- say: [", "researcher.yaml: no YAML"),
    ],
)
async def test_a_file_that_cannot_be_played_ends_the_turn_and_says_why(
    stage: Stage, tmp_path: Path, script: str, error: str
) -> None:
    stage.write("researcher.yaml", script)
    outcome = await stage.play(profile="researcher", cwd=tmp_path)
    assert outcome.status == "failed"
    assert error in outcome.error


async def test_an_agent_for_which_there_is_no_file_says_what_it_could_be_called(stage: Stage) -> None:
    outcome = await stage.play(profile="judge")
    assert outcome.status == "failed"
    assert outcome.error.endswith("has no script for this agent: it may be called judge-1.yaml, judge.yaml")


@pytest.mark.parametrize("command", ["!run touch x", "- run: touch x", "- until: x", "- each: {of: [1], do: []}"])
async def test_a_prompt_cannot_have_what_only_the_owners_files_may(stage: Stage, tmp_path: Path, command: str) -> None:
    outcome = await stage.play(command, cwd=tmp_path)
    assert outcome.error.startswith("no such instruction: !")
    assert not (tmp_path / "x").exists()


async def test_a_command_that_a_person_denies_is_not_run(stage: Stage, tmp_path: Path) -> None:
    stage.write("worker.yaml", "- run: touch x")
    person = Person(Permission(False, "not today"))
    outcome = await stage.play(profile="worker", cwd=tmp_path, person=person)
    assert outcome.error == "touch x: not today"
    assert not (tmp_path / "x").exists()
    assert [use.tool for use in person.uses] == ["Bash"]


async def test_who_has_no_role_obeys_the_prompt(stage: Stage) -> None:
    assert (await stage.play("!say hello")).output == "hello"


async def test_only_the_first_message_is_answered_by_the_folder(stage: Stage) -> None:
    stage.write("researcher.yaml", "- say: from the file")
    agent = await stage.agent(profile="researcher")
    assert (await turn(agent, "!say a picture follows"))[-1].data["output"] == "from the file"
    assert (await turn(agent, "!say more"))[-1].data["output"] == "more"


async def test_an_empty_file_is_an_agent_that_does_nothing(stage: Stage) -> None:
    stage.write("researcher.yaml", "# nothing today\n")
    assert await stage.play(profile="researcher") == Outcome("done", turns=0)


async def test_the_file_depends_on_the_time_and_on_the_phase_of_the_issue(stage: Stage) -> None:
    issue, other = await stage.fleet.issue(), await stage.fleet.issue("another")
    stage.write("judge.yaml", "- say: any phase")
    stage.write("judge-research.yaml", "- say: time $(n)")
    stage.write("judge-research-2.yaml", "- say: the second time")

    async def said(**binding: Any) -> str:
        return (await stage.play(profile="judge", **binding)).output

    assert [await said(issue=issue) for _ in range(3)] == ["time 1", "the second time", "time 3"]
    assert await said(issue=other) == "time 1"
    assert await said() == "any phase"
    stage.write(f"{stage.fleet.actor(issue=issue).issue_identifier}/judge.yaml", "- say: of this issue")
    (stage.scripts / "judge-research.yaml").unlink()
    assert [await said(issue=each) for each in (issue, other)] == ["of this issue", "the second time"]


def test_files_are_looked_for_from_the_most_special_on() -> None:
    assert file_names("judge", "ready", 2, "SHOP-7") == [
        *("SHOP-7/judge-ready-2.yaml", "judge-ready-2.yaml"),
        *("SHOP-7/judge-ready.yaml", "judge-ready.yaml"),
        *("SHOP-7/judge.yaml", "judge.yaml"),
    ]
    assert file_names("scanner", None, 1, None) == ["scanner-1.yaml", "scanner.yaml"]
    assert file_names("worker", "ready", 1, "../x") == ["worker-ready-1.yaml", "worker-ready.yaml", "worker.yaml"]


async def test_placeholders_stand_for_what_is_so(stage: Stage, tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "shop")
    issue = await stage.fleet.issue("login fails")
    actor = stage.fleet.actor(issue=issue)
    stage.write(
        "researcher-research.yaml",
        """
- write: {path: docs/$(issue).md, text: "of $(title): $$(pwd)"}
- say: $(role) $(phase) $(n) $(issue_id) $(project) $(fence) $(branch)
- say: $(sha256 docs/$(issue).md)
- say: $(worktree) $(head)
- say: $(told wish) $(told fence)
""",
    )
    told = json.dumps({"wish": "tea", "fence": 4})
    prompt = f'Of an issue:\n\n```json\n{{"wish": "milk"}}\n```\n\n```json\n{told}\n```\n'
    outcome = await stage.play(prompt, profile="researcher", issue=issue, cwd=folder)
    text = (folder / f"docs/{actor.issue_identifier}.md").read_bytes()
    assert text == b"of login fails: $(pwd)\n"
    assert outcome.output.splitlines() == [
        f"researcher research 1 {issue} {actor.project_slug} 0 {git(folder, 'branch', '--show-current').strip()}",
        hashlib.sha256(text).hexdigest(),
        f"{folder} {git(folder, 'rev-parse', 'HEAD').strip()}",
        "tea 4",
    ]


async def test_answers_of_tools_can_be_used_and_lists_gone_through(stage: Stage, tmp_path: Path) -> None:
    stage.write(
        "intake.yaml",
        """
- each:
    of: [{title: the door}, {title: the window}]
    as: wish
    do:
      - call: {tool: create_issue, arguments: {title: mend $(wish.title), priority: 2}, must: true}
      - say: made $(create_issue.identifier)
- call: {tool: list_issues, arguments: {}, as: all}
- say: first $(all.issues.0.title)
- run: echo $(all.issues.1.priority) > seen
""",
    )
    outcome = await stage.play(profile="intake", cwd=tmp_path)
    assert outcome.status == "done", outcome.error
    assert [line for line in outcome.output.splitlines() if line.startswith("made ")]
    assert "first mend the door" in outcome.output
    assert (tmp_path / "seen").read_text(encoding="utf-8") == "2\n"


async def test_an_agent_can_be_held_until_a_file_is_there(stage: Stage) -> None:
    stage.write("worker.yaml", "- say: waiting\n- until: go\n- say: gone on")
    agent = await stage.agent(profile="worker")
    await agent.send("do it")
    told = agent.events()
    while (await anext(told)).name != "text_delta":
        pass
    stage.write("go", "")
    async with asyncio.timeout(30):
        *_, last = [event async for event in told]
    assert last.data["output"] == "waiting\ngone on"


async def test_an_agent_that_is_refused_again_and_again_can_be_stopped(stage: Stage) -> None:
    stage.write("worker.yaml", f"- each: {{of: {list(range(5000))}, do: [use: Bash]}}")
    agent = await stage.agent(Person(Permission(False, "not today")), profile="worker")
    await agent.send("do it")
    told = agent.events()
    while (await anext(told)).name != "tool_result":
        pass
    await agent.stop()
    *_, last = [event async for event in told]
    assert (last.data["reason"], last.data["turns"] < 5000) == ("stopped", True)


def test_a_placeholder_alone_keeps_its_type_and_what_it_stands_for_is_not_read_again() -> None:
    values: dict[str, Any] = {"fence": 3, "files": ["a"], "title": "$(fence)", "name": "fence"}

    def look(name: str) -> Any:
        return values[name]

    given = {"a": "$(fence)", "b": ["$(files)", "x$(fence)y$(files)"], "c": "$(title)", "d": 5, "e": "$($(name))"}
    assert filled(given, look) == {"a": 3, "b": [["a"], "x3y['a']"], "c": "$(fence)", "d": 5, "e": 3}
    assert filled("cost $$(fence) $5 (3)", look) == "cost $(fence) $5 (3)"
    with pytest.raises(BadScript):
        filled("$(f(x)", look)
