"""What simulated agents do: write artifacts and code, and judge both."""

import os
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.tracker.contract import packaged_contract
from rookery.domains.tracker.tables import artifacts, phase_claims, prs
from rookery.engine.tables import dispatches
from rookery.files.git import run_git
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import PHASES
from tests.engine.simulation.agents import SimulatedAgent
from tests.engine.simulation.truth import BAD, GOOD, sha256

AUTHOR = {
    f"GIT_{role}_{what}": said
    for role in ("AUTHOR", "COMMITTER")
    for what, said in (("NAME", "agent"), ("EMAIL", "agent@example.org"))
}
STRAY_NOTES = 0.15
"""So many of those who have claimed write down something that they never commit, also when they do their best."""
Row = sa.Row[Any]


async def act(agent: SimulatedAgent) -> None:
    """Do what the dispatch of the session wants."""
    dispatch = await dispatch_of(agent)
    if dispatch is None:
        agent.tell("finds nothing to do")
        return
    await agent.think()
    if agent.behaviour == "hangs":
        await agent.hang()
    if agent.behaviour == "dawdles":
        await agent.dawdle()
    if agent.behaviour == "idles":
        return
    if dispatch.work == "judge_phase":
        await _judge_artifact(agent, dispatch)
    elif dispatch.work == "judge_pr":
        await _judge_change(agent, dispatch)
    elif dispatch.work == "phase":
        await _work(agent, dispatch)


async def dispatch_of(agent: SimulatedAgent) -> Row | None:
    """What the agent was started for, with the `identifier` of its issue."""
    return await agent.read(lambda tx: _dispatch(tx, agent.launch.session))


def _dispatch(tx: Tx, session: str) -> Row | None:
    wanted = sa.select(dispatches, issues.c.identifier).outerjoin(issues, issues.c.id == dispatches.c.issue_id)
    return tx.one(wanted.where(dispatches.c.id == session.removeprefix("dispatch:")))


async def _work(agent: SimulatedAgent, dispatch: Row) -> None:
    if agent.behaviour == "gives_up":
        await agent.call("update_issue_status", status="todo", reason="I do not know how.")
        return
    if agent.behaviour == "asks_for_help":
        await agent.call("update_issue_status", status="blocked", reason="Which colour?")
        return
    if agent.behaviour == "splits" and agent.actor.profile != "researcher":
        await agent.call("create_subtask", title="The hard part")
        return
    if agent.behaviour == "mistakes_the_phase":
        other = next(phase for phase in PHASES if phase != dispatch.phase)
        await _tried(agent, "complete_phase", completed_phase=other, summary="done", project_path=agent.launch.cwd)
    if dispatch.phase == "ready":
        await _build(agent, dispatch)
    else:
        good = not agent.stage.temper.happens(agent.stage.temper.bad_work, agent.rng)
        await write_artifact(agent, dispatch, good=good)
    if agent.behaviour == "goes_on" or (agent.behaviour == "is_stubborn" and agent.rng.random() < 0.5):
        await agent.think(1, 60)
        put(agent, "afterthought.txt", f"after {agent.name}")
        if dispatch.phase == "ready":
            commit(agent, good=False)


async def write_artifact(agent: SimulatedAgent, dispatch: Row, *, good: bool) -> str:
    """Write the artifact of a phase and claim it; what is refused is tried once more. Returns the artifact's hash."""
    contract = packaged_contract(dispatch.phase)
    path = f"docs/tickets/{dispatch.identifier}/{contract.artifact}"
    sections = "\n\n".join(f"## {name}\n\nWords about it." for name in contract.required_sections)
    text = f"# {dispatch.phase} of {dispatch.identifier}\n\n{GOOD if good else BAD} by {agent.name}\n\n{sections}\n"
    if good:
        agent.stage.truth.good_artifacts.add(sha256(text))
    await agent.think()
    put(agent, path, text)
    await agent.think(0.1, 2)
    following = PHASES[PHASES.index(dispatch.phase) + 1]
    digest = sha256("nothing") if agent.behaviour == "mistakes_the_artifact" else sha256(text)
    claim = {
        "completed_phase": dispatch.phase,
        "summary": "written",
        "project_path": agent.launch.cwd,
        "contract_version": contract.version,
        "artifact_path": path,
        "recommended_next_phase": following,
    }
    if await _tried(agent, "complete_phase", **claim, artifact_hash=digest) is None:
        await agent.think(0.1, 2)
        await _tried(agent, "complete_phase", **claim, artifact_hash=sha256(text))
    return sha256(text)


async def _build(agent: SimulatedAgent, dispatch: Row) -> None:
    """Write code, commit it and claim that the issue is ready."""
    good = not agent.stage.temper.happens(agent.stage.temper.bad_work, agent.rng)
    put(agent, f"src/{dispatch.identifier}.txt", f"{GOOD if good else BAD}\nby {agent.name}\n")
    await agent.think()
    if agent.behaviour == "leaves_litter":
        commit(agent, good=good)
        put(agent, f"litter-{agent.name}.txt", "left lying")
    else:
        commit(agent, good=good)
    await agent.think(0.1, 2)
    claim = {"completed_phase": "ready", "summary": "built", "project_path": agent.launch.cwd}
    if await _tried(agent, "complete_phase", **claim) is None and agent.behaviour != "leaves_litter":
        await agent.think(0.1, 2)
        commit(agent, good=good)
        await _tried(agent, "complete_phase", **claim)
    if agent.rng.random() < STRAY_NOTES:
        await agent.think(0.1, 2)
        put(agent, f"notes-{agent.name}.txt", "what I would do next time")


async def _judge_artifact(agent: SimulatedAgent, dispatch: Row) -> None:
    read: Row | None = await agent.read(lambda tx: _claimed(tx, dispatch.issue_id, dispatch.phase))
    if read is None:
        return
    await agent.think(0.5, 10)
    approves = GOOD in read.content and not agent.stage.temper.happens(agent.stage.temper.harsh_judges, agent.rng)
    digest = sha256("nothing") if agent.behaviour == "mistakes_the_artifact" else read.artifact_hash
    about = {"phase": dispatch.phase, "artifact_hash": digest}
    if approves:
        await _tried(agent, "approve_phase", **about, reason="well done")
    else:
        await _tried(agent, "reject_phase", **about, reason="not good enough")
    if agent.behaviour == "goes_on":
        await agent.think(1, 30)
        await _tried(agent, "reject_phase", phase=dispatch.phase, artifact_hash=digest, reason="on second thoughts")


async def _judge_change(agent: SimulatedAgent, dispatch: Row) -> None:
    read: Row | None = await agent.read(lambda tx: newest_change(tx, dispatch.issue_id))
    if read is None:
        return
    await agent.think(0.5, 10)
    approves = f"+{BAD}" not in read.diff and f"+{GOOD}" in read.diff
    approves = approves and not agent.stage.temper.happens(agent.stage.temper.harsh_judges, agent.rng)
    named: dict[str, Any] = {"revision": read.revision} if agent.rng.random() < 0.7 else {}
    if approves:
        await _tried(agent, "approve_pr", **named, reason="well done")
    else:
        await _tried(agent, "reject_pr", **named, reason="not good enough", fix_instructions="Make it good.")


def _claimed(tx: Tx, issue_id: str, phase: str) -> Row | None:
    same = sa.and_(artifacts.c.issue_id == phase_claims.c.issue_id, artifacts.c.hash == phase_claims.c.artifact_hash)
    wanted = sa.select(phase_claims, artifacts.c.content).join(artifacts, same)
    mine = (phase_claims.c.issue_id == issue_id, phase_claims.c.phase == phase)
    return tx.one(wanted.where(*mine).order_by(phase_claims.c.seq.desc()).limit(1))


def newest_change(tx: Tx, issue_id: str) -> Row | None:
    """The newest revision of the issue's pull request."""
    return tx.one(sa.select(prs).where(prs.c.issue_id == issue_id).order_by(prs.c.revision.desc()).limit(1))


async def _tried(agent: SimulatedAgent, tool: str, **arguments: Any) -> Any:
    """What the tool answers; None if it refuses."""
    try:
        return await agent.call(tool, **arguments)
    except RookeryError:
        return None


def put(agent: SimulatedAgent, path: str, text: str) -> None:
    """Write a file, if the folder of the agent is still there: it may have been taken away meanwhile."""
    folder = agent.launch.cwd
    if folder is None or not os.path.isdir(folder):
        agent.tell("has no folder any more")
        return
    place = os.path.join(folder, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "w", encoding="utf-8") as file:
        file.write(text)
    agent.stage.truth.wrote(place, text)


def commit(agent: SimulatedAgent, *, good: bool) -> None:
    """Commit all that is in the folder of the agent, if that is still there."""
    folder = agent.launch.cwd
    if folder is None or not os.path.isdir(folder):
        return
    try:
        run_git(("add", "--all", "--", "."), {}, folder)
        if run_git(("status", "--porcelain"), {}, folder).strip():
            run_git(("commit", "--quiet", "--no-verify", f"--message=work of {agent.name}"), AUTHOR, folder)
        head = run_git(("rev-parse", "--verify", "--quiet", "HEAD"), {}, folder).decode().strip()
    except RookeryError as error:
        agent.tell(f"cannot commit: {error.message}")
        return
    agent.stage.truth.committed(folder, head)
    if good:
        agent.stage.truth.good_commits.add(head)
