"""An agent in its worktree with an artifact that is in order, for the tests of claims and verdicts."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.domains.tracker.contract import packaged_contract
from rookery.domains.tracker.tables import (
    artifacts,
    comments,
    finding_processing,
    findings,
    phase_claims,
    phase_verdicts,
)
from tests.domains.tracker.desk import Desk

PROFILES = {"research": "researcher", "architecture": "architect", "grooming": "planner", "ready": "worker"}
WRITTEN = (findings, finding_processing, phase_claims, phase_verdicts, artifacts, comments)


def good_text(phase: str, without: tuple[str, ...] = ()) -> str:
    """An artifact with every section of the contract but those left out."""
    wanted = [section for section in packaged_contract(phase).required_sections if section not in without]
    return f"# About {phase}\n\n" + "".join(f"## {section}\n\nWhat there is to say.\n\n" for section in wanted)


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@dataclass
class Claimant:
    """Who works on the issue, and where."""

    desk: Desk
    issue: sa.Row[Any]
    actor: Actor
    repository: Path
    folder: Path
    phase: str

    @property
    def file(self) -> Path:
        name = packaged_contract(self.phase).artifact
        assert name is not None
        return self.folder / "docs" / "tickets" / self.issue.identifier / name

    def write(self, text: str) -> str:
        """Put the text into the artifact; its hash."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(text.encode())
        return sha256(self.file)

    def bound(self, profile: str | None, **binding: Any) -> Actor:
        """Another session on the same issue."""
        return self.desk.actor(profile, self.issue, project="repo", **binding)

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """What a claim says that is in order; a change to None leaves the argument out."""
        given: dict[str, Any] = {"completed_phase": self.phase, "summary": "done", "project_path": str(self.folder)}
        if self.phase != "ready":
            given |= {
                "contract_version": 1,
                "artifact_path": str(self.file.relative_to(self.folder)),
                "artifact_hash": sha256(self.file) if self.file.exists() else "0" * 64,
                "recommended_next_phase": "ready",
            }
        return {name: value for name, value in {**given, **changes}.items() if value is not None}

    async def claim(self, actor: Actor | None = None, **changes: Any) -> Any:
        return await self.desk.call(actor or self.actor, "complete_phase", **self.arguments(**changes))

    async def refused(
        self, kind: type[RookeryError], says: str = "", actor: Actor | None = None, **changes: Any
    ) -> RookeryError:
        """What the claim is refused with. Nothing is written."""
        return await refused(self.desk, kind, says, actor or self.actor, "complete_phase", **self.arguments(**changes))


async def refused(
    desk: Desk, kind: type[RookeryError], says: str, actor: Actor, tool: str, **arguments: Any
) -> RookeryError:
    """What the call is refused with. Nothing is written."""
    before = written(desk)
    with pytest.raises(kind) as caught:
        await desk.call(actor, tool, **arguments)
    assert type(caught.value) is kind
    assert says in caught.value.message
    assert caught.value.hint
    assert written(desk) == before
    return caught.value


def written(desk: Desk) -> list[int]:
    """How many rows there are of everything that a claim or a verdict could write."""
    return [desk.count(table) for table in WRITTEN]


def standing(desk: Desk, issue: sa.Row[Any]) -> dict[str, Any]:
    """Everything that the issue itself says, without when it was last touched."""
    return {name: value for name, value in desk.reload(issue)._mapping.items() if name != "updated_ms"}


async def claimant(desk: Desk, phase: str = "research", profile: str | None = "", **binding: Any) -> Claimant:
    """An agent of the phase's profile, in the worktree of an issue in that phase; its artifact is written."""
    repository = desk.folder / "repo"
    if not repository.exists():
        await desk.git_project()
    issue = await desk.issue(phase=phase, project="repo")
    folder = desk.worktree(repository, issue).path
    chosen = PROFILES[phase] if profile == "" else profile
    actor = desk.actor(chosen, issue, project="repo", worktree=str(folder), cwd=str(folder), **binding)
    made = Claimant(desk, issue, actor, repository, folder, phase)
    if phase != "ready":
        made.write(good_text(phase))
    return made
