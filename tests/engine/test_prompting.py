"""What a dispatched agent is told, section by section, on both databases."""

from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.tracker.tables import phase_claims
from tests.domains.tracker.prompting import HOSTILE, asked, parts
from tests.engine.crew import Crew, call, write_artifact


async def learnt(crew: Crew, *found: tuple[str, str | None], title: str = "an older login issue") -> None:
    """Learnings of another issue of the project."""
    issue = await crew.issue(title, project="shop")
    actor = crew.actor("worker", issue, project="shop")
    for pattern, kind in found:
        more = {} if kind is None else {"learning_type": kind}
        await crew.call(actor, "add_learning", pattern=f"{pattern}, as was seen in this place before", **more)


def noted(row: sa.Row[Any], name: str) -> dict[str, Any]:
    """What is on record about a section of the prompt."""
    return next(each for each in row.prompt["sections"] if each["section"] == name)


@pytest.mark.anyio
async def test_notes_of_other_profiles_and_projects_are_not_told(crew: Crew) -> None:
    await crew.open()
    await crew.project("elsewhere")
    for profile, project, text in (("judge", "shop", "a judge's"), ("worker", "elsewhere", "of elsewhere")):
        actor = crew.actor(profile, project=project)
        await crew.call(actor, "update_memory", scope="project", filename="notes.md", content=f"{text} remark 4711")
    await crew.dispatched(await crew.todo())
    assert "4711" not in crew.runtime.prompts[0]


@pytest.mark.anyio
async def test_an_agent_is_told_where_it_works_what_is_known_and_last_what_to_do(crew: Crew) -> None:
    await crew.open()
    await learnt(
        crew,
        ("The login page needs the session cookie", "gotcha"),
        ("Every login error is logged with its cause", "convention"),
        ("Tests stand beside the code that they test", "convention"),
        ("The printer jams on Mondays", "gotcha"),
    )
    worker = crew.actor("worker", project="shop")
    await crew.call(worker, "update_memory", scope="project", filename="login.md", content="Logins use port 8080.")
    issue = await crew.todo("login fails")
    row = await crew.dispatched(issue)
    (prompt,) = crew.runtime.prompts
    assert parts(prompt)[:5] == [
        f"{issue.identifier}: work on ready",
        "Where you work",
        "What your profile keeps in mind",
        "Conventions of this project",
        "What was learnt in similar work",
    ]
    assert parts(prompt)[-1] == "What to do now"
    conventions = prompt[prompt.index("# Conventions") : prompt.index("# What was learnt")]
    assert conventions.index("Every login error") < conventions.index("Tests stand beside")
    assert "session cookie" in prompt[prompt.index("# What was learnt") :]
    assert "The printer jams" not in prompt
    assert prompt.count("Logins use port 8080.") == 1
    assert asked(prompt, "complete_phase")["fence"] == 1
    assert asked(prompt, "complete_phase")["project_path"] == row.workspace
    assert row.prompt["tokens"] == -(-len(prompt.encode()) // 4)
    assert noted(row, "conventions")["budget"] == 1_000
    about = next(event.payload for event in crew.events(row.run_id) if event.subtype == "other")
    assert (about["dispatch"], about["prompt"]) == (row.id, row.prompt)


@pytest.mark.anyio
async def test_what_does_not_fit_is_left_out_by_relevance_and_recorded(crew: Crew) -> None:
    await crew.open(prompt={"learnings": 90, "memories": 100, "issue": 400})
    await learnt(
        crew,
        ("The login needs the session cookie of the shop", "gotcha"),
        (f"A login of old was slow {'because of its database ' * 30}", "gotcha"),
    )
    worker = crew.actor("worker", project="shop")
    for name, text in (("printer.md", "Paper. " * 100), ("login.md", "The login session lasts an hour.")):
        await crew.call(worker, "update_memory", scope="project", filename=name, content=text)
    issue = await crew.todo("login session cookie", description="It fails. " * 500)
    row = await crew.dispatched(issue)
    (prompt,) = crew.runtime.prompts
    assert noted(row, "memories")["shown"][0] == "memory-file://project/login.md"
    assert noted(row, "memories").get("left_out", noted(row, "memories").get("shortened")) is not None
    assert len(noted(row, "learnings")["shown"]) == 1
    assert len(noted(row, "learnings")["left_out"]) == 1
    assert noted(row, "issue")["shortened"] == ["description"]
    assert "The login needs the session cookie" in prompt
    for name in ("learnings", "memories", "issue"):
        assert noted(row, name)["tokens"] <= noted(row, name)["budget"]


@pytest.mark.anyio
async def test_notes_are_in_the_prompt_and_not_once_more_in_the_instructions(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crew.open()
    worker = crew.actor("worker", project="shop")
    await crew.call(worker, "update_memory", scope="project", filename="login.md", content="Logins use port 8080.")
    launches: list[Any] = []
    runtime = crew.runtime.inner.runtimes["scripted"]
    start = runtime.start

    async def listening(launch: Any, host: Any) -> Any:
        launches.append(launch)
        return await start(launch, host)

    monkeypatch.setattr(runtime, "start", listening)
    await crew.dispatched(await crew.todo())
    assert "Logins use port 8080." in crew.runtime.prompts[0]
    assert "8080" not in launches[0].instructions


@pytest.mark.anyio
async def test_what_others_wrote_cannot_speak_in_our_place(crew: Crew) -> None:
    await crew.open()
    await learnt(crew, (f"login {HOSTILE}", "convention"))
    await learnt(crew, (f"login {HOSTILE}", None), title="another login issue")
    worker = crew.actor("worker", project="shop")
    await crew.call(worker, "update_memory", scope="project", filename="login.md", content=HOSTILE)
    await crew.dispatched(await crew.todo("login", description=HOSTILE))
    (prompt,) = crew.runtime.prompts
    assert parts(prompt).count("What to do now") == 1
    assert parts(prompt)[-1] == "What to do now"


@pytest.mark.anyio
async def test_earlier_rejections_of_a_phase_are_told_once_each_with_the_last_one_to_be_mended(crew: Crew) -> None:
    await crew.open(write_artifact)
    issue = await crew.todo(phase="grooming")
    for reason in ("too vague", "no estimate"):
        crew.runtime.script = write_artifact
        await crew.dispatched(crew.reload(issue))
        await crew.advance()
        claim = crew.rows(sa.select(phase_claims).order_by(phase_claims.c.seq))[-1]
        crew.play(call("reject_phase", phase="grooming", artifact_hash=claim.artifact_hash, reason=reason))
        await crew.dispatched(crew.reload(issue), work="judge_phase", role="judge", about=claim.finding_id)
        await crew.advance()
    second_judge = crew.runtime.prompts[-1]
    assert (second_judge.count("too vague"), "# Earlier rejections" in second_judge) == (1, True)
    crew.runtime.script = write_artifact
    await crew.dispatched(crew.reload(issue))
    prompt = crew.runtime.prompts[-1]
    assert (prompt.count("too vague"), prompt.count("no estimate")) == (1, 1)
    assert prompt.index("# Earlier rejections") < prompt.index("too vague") < prompt.index("Mend exactly this first")
    assert prompt.index("Mend exactly this first") < prompt.index("no estimate")
