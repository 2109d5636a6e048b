"""How the tests of moving issues call the tool, and what they look at."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import PermissionDenied, RookeryError
from rookery.domains.tracker.tables import (
    artifacts,
    comments,
    finding_processing,
    findings,
    issue_changes,
    issue_labels,
    phase_claims,
    prs,
    tracker_projects,
)
from rookery.lifecycle.issue_tables import issue_aliases, issues
from tests.domains.tracker.desk import Desk

WHY = "the change belongs to the API"
TABLES = (issues, issue_aliases, issue_labels, issue_changes, comments, tracker_projects, finding_processing, prs)


def everything(desk: Desk) -> list[list[tuple[Any, ...]]]:
    return [sorted((tuple(row) for row in desk.rows(sa.select(table))), key=repr) for table in TABLES]


def tree_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


async def move(desk: Desk, issue: Any, target: str = "api", **more: Any) -> Any:
    return await desk.call(desk.actor("planner", issue), "move_issue", target_project_id=target, reason=WHY, **more)


async def refused(desk: Desk, kind: type[RookeryError], actor: Actor, **changes: Any) -> RookeryError:
    before = everything(desk)
    with pytest.raises(kind) as caught:
        await desk.call(actor, "move_issue", **{"target_project_id": "api", "reason": WHY, **changes})
    assert everything(desk) == before
    assert caught.value.hint or kind is PermissionDenied
    return caught.value


async def accept(desk: Desk, issue: sa.Row[Any], phase: str, content: str, outcome: str = "approved") -> None:
    """What is left when a phase's claim was accepted: the finding, the claim, the artifact."""
    number = desk.count(findings) + 1
    finding = {"id": f"pc-{number}", "issue_id": issue.id, "created_ms": number}
    whose = {"tenant": issue.tenant, "category": "phase_completion", "author": "x", "subject": "x", "payload": {}}
    desk.change(sa.insert(findings).values(**finding, **whose))
    claim = {"finding_id": f"pc-{number}", "seq": number, "issue_id": issue.id}
    desk.change(sa.insert(phase_claims).values(**claim, phase=phase, artifact_hash=f"hash-{number}", subject="x"))
    processed = {"outcome": outcome, "processed_ms": number}
    desk.change(sa.insert(finding_processing).values(**claim, project_id=issue.project_id, **processed))
    name = {"architecture": "design"}.get(phase, phase)
    kept = {"phase": phase, "path": f"docs/tickets/{issue.identifier}/{name}.md", "content": content}
    desk.change(sa.insert(artifacts).values(issue_id=issue.id, hash=f"hash-{number}", **kept, created_ms=number))
