"""Scripts of a folder, for agents whose prompts are written for models: the setting `scripts` names it.

Which script an agent plays is said by its role, the phase of its issue, and which time it is that this role is at this
phase of this issue. The first of these files that is there:

    SHOP-7/judge-research-1.yaml    judge-research-1.yaml    the first time only
    SHOP-7/judge-research.yaml      judge-research.yaml      every other time
    SHOP-7/judge.yaml               judge.yaml               whatever the phase

A scanner and an intake have no issue: `scanner-1.yaml`, `scanner.yaml`. What a file says is in `runtimes.script`; these
may have `run`, `until` and `each` besides, and placeholders:

    $(issue) $(issue_id) $(title) $(project) $(role) $(phase) $(n) $(fence)     as they were when the agent began
    $(claim_hash) $(claimed_phase) $(revision)     of the newest claim and of the newest pull request
    $(payload.files)                               what a scanner or an intake is to do
    $(worktree) $(branch) $(head)                  the folder of the agent, as it is now
    $(sha256 PATH)                                 of a file in it, as it is now
    $(told NAME)                                   what the prompt says after "NAME": in one of its blocks of JSON
    $(create_issue.identifier)                     what a tool has answered; `as` gives the answer another name
"""

import asyncio
import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.domains.tracker.claim_reader import latest_claim
from rookery.domains.tracker.tables import prs
from rookery.engine.tables import dispatches
from rookery.files.git import run_git
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs
from rookery.runtimes.placeholders import filled, member
from rookery.runtimes.script import LONGEST_YAML, BadScript, Step, read_file
from rookery.sessions.port import Launch

if TYPE_CHECKING:
    from rookery.app import Platform

_BLOCKS = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ON_DISK = re.compile(r"\$\((sha256|branch|head)\b")
_r = agent_runs.c


@dataclass(slots=True)
class Scene:
    """What an agent plays, and what its placeholders stand for."""

    name: str
    steps: list[Step]
    folder: str
    cwd: str | None
    prompt: str
    known: dict[str, Any]
    blocks: list[dict[str, Any]] | None = field(default=None)

    async def step(self, step: Step) -> Step:
        """The step with its placeholders filled in, as things are now."""
        # What is repeated is filled in each time.
        later = {name: value for name, value in step.given.items() if step.word == "each" and name == "do"}
        now = {name: value for name, value in step.given.items() if name not in later}
        if _ON_DISK.search(str(now)):
            return Step(step.word, {**await asyncio.to_thread(filled, now, self.value), **later})
        return Step(step.word, {**filled(now, self.value), **later})

    def value(self, name: str) -> Any:
        """What a placeholder stands for."""
        word, _, rest = name.partition(" ")
        if word == "sha256" and rest:
            return self._digest(rest)
        if word == "told" and rest:
            return self._told(rest)
        if name == "branch":
            return self._git("rev-parse", "--abbrev-ref", "HEAD")
        if name == "head":
            return self._git("rev-parse", "HEAD")
        first, *steps = name.split(".")
        if first not in self.known:
            raise BadScript(f"$({name}) stands for nothing; known are {', '.join(sorted(self.known))}")
        return member(self.known[first], name, steps)

    def _digest(self, path: str) -> str:
        with open(os.path.join(self._cwd, path), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def _told(self, name: str) -> Any:
        if self.blocks is None:
            self.blocks = _objects(self.prompt)
        # What is asked of the agent stands last, after what others wrote.
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        raise BadScript(f"the prompt tells no {name}")

    def _git(self, *words: str) -> str:
        return run_git(words, {}, self._cwd).decode().strip()

    @property
    def _cwd(self) -> str:
        if self.cwd is None:
            raise BadScript("this session has no folder")
        return self.cwd


async def scene_of(platform: "Platform", launch: Launch, prompt: str) -> Scene | None:
    """What the folder has for this agent; None if no folder is set or the agent has no role. BadScript if the folder
    has nothing for it, or nothing that can be read."""
    folder, role = platform.settings.scripts, launch.actor.profile
    if not folder or role is None:
        return None
    known = await platform.database.read(lambda tx: _standing(tx, launch.actor))
    names = file_names(role, known["phase"], known["n"], known["issue"])
    name, steps = await asyncio.to_thread(_read, folder, names)
    return Scene(name, steps, folder, launch.cwd, prompt, {**known, "worktree": launch.cwd or ""})


def file_names(role: str, phase: str | None, n: int, issue: str | None) -> list[str]:
    """Where a script is looked for, the first that is there counts."""
    place = role if phase is None else f"{role}-{phase}"
    own = issue is not None and os.path.basename(issue) == issue
    named = [f"{place}-{n}", place, *([role] if phase is not None else [])]
    return [f"{folder}{name}.yaml" for name in named for folder in ([f"{issue}/"] if own else []) + [""]]


def _read(folder: str, names: list[str]) -> tuple[str, list[Step]]:
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read(LONGEST_YAML + 1)
        except FileNotFoundError:
            continue
        if len(text) > LONGEST_YAML:
            raise BadScript(f"{name} is longer than {LONGEST_YAML} characters")
        try:
            return name, read_file(text)
        except BadScript as bad:
            raise BadScript(f"{name}: {bad}") from None
    raise BadScript(f"{folder} has no script for this agent: it may be called {', '.join(names)}")


def _standing(tx: Tx, actor: Actor) -> dict[str, Any]:
    """What is so when the agent begins."""
    issue = None if actor.issue is None else tx.one(sa.select(issues).where(issues.c.id == actor.issue))
    phase = actor.phase or (issue.phase if issue is not None else None)
    known = {"project": actor.project_slug or "", "role": actor.profile, "phase": phase, "issue": None}
    known |= {"n": _time(tx, actor, phase), "payload": _payload(tx, actor)}
    if issue is None:
        return known
    claim = latest_claim(tx, issue.id)
    revision = tx.scalar(sa.select(sa.func.max(prs.c.revision)).where(prs.c.issue_id == issue.id))
    return {
        **known,
        "issue": issue.identifier,
        "issue_id": issue.id,
        "title": issue.title,
        "fence": issue.fence,
        "claim_hash": claim.hash if claim is not None else None,
        "claimed_phase": claim.phase if claim is not None else None,
        "revision": revision,
    }


def _time(tx: Tx, actor: Actor, phase: str | None) -> int:
    """Which run this is of its role at this phase of its issue, or of its role in its project, from 1."""
    this = tx.one(sa.select(agent_runs).where(_r.tenant == actor.tenant, _r.id == actor.run)) if actor.run else None
    if this is None:
        return 1
    about = _r.issue_id == this.issue_id if this.issue_id is not None else _r.issue_id.is_(None)
    same = [_r.tenant == actor.tenant, _r.project_id == this.project_id, about, _r.profile == this.profile]
    if this.issue_id is not None:
        same.append(sa.or_(_r.phase == phase, _r.id == this.id))
    before = sa.tuple_(_r.created_ms, _r.id) <= sa.tuple_(
        sa.literal(this.created_ms, sa.BigInteger), sa.literal(this.id)
    )
    return tx.scalar(sa.select(sa.func.count()).select_from(agent_runs).where(*same, before))


def _payload(tx: Tx, actor: Actor) -> dict[str, Any]:
    key, _, dispatch = (actor.session or "").partition(":")
    if key != "dispatch":
        return {}
    of = (dispatches.c.tenant == actor.tenant, dispatches.c.id == dispatch)
    return tx.scalar(sa.select(dispatches.c.payload).where(*of)) or {}


def _objects(prompt: str) -> list[dict[str, Any]]:
    """The JSON objects that stand in the prompt as blocks of their own."""
    found: list[dict[str, Any]] = []
    for block in _BLOCKS.findall(prompt):
        try:
            told: Any = json.loads(block)
        except ValueError:
            continue
        if isinstance(told, dict):
            found.append(cast("dict[str, Any]", told))
    return found
