"""A project of a few thousand issues as a busy fleet leaves it, for the console's measurements. Always the same."""

import random
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.tables import issue_changes, issue_deps, issue_labels, prs, tracker_projects
from rookery.identity.store import DEFAULT_PROJECT, DEFAULT_TENANT, IdentityStore
from rookery.lifecycle.issue_ref import identifier
from rookery.lifecycle.issue_tables import issues

SHARES = {"backlog": 14, "todo": 24, "in_progress": 2, "review": 3, "blocked": 3, "done": 48, "cancelled": 6}
LABELS = ("backend", "frontend", "database", "docs", "flaky", "security", "needs-planning", "good-first-issue")
PHASES = ("research", "architecture", "grooming", "ready", "ready", "ready")
NOW_MS = 1_790_000_000_000
DIFF = "diff --git a/src/login.py b/src/login.py\n" + "+    return True\n" * 1200
Record = dict[str, Any]


def fill(tx: Tx, count: int) -> list[str]:
    """Put so many issues into the default project. Gives the ids of some that are to do."""
    chance = random.Random(11)
    project = IdentityStore(tx, DEFAULT_TENANT).project(DEFAULT_PROJECT).id
    statuses = random.Random(12).choices(list(SHARES), list(SHARES.values()), k=count)
    made = [_issue(chance, project, number, status) for number, status in enumerate(statuses, 1)]
    numbered = {"project_id": project, "tenant": DEFAULT_TENANT, "prefix": "DEF", "settings": {}}
    tx.run(sa.insert(tracker_projects).values(**numbered, next_number=count + 1))
    for table, rows in (
        (issues, made),
        (issue_labels, [row for issue in made for row in _labels(chance, issue)]),
        (issue_deps, [row for issue in made for row in _dependencies(chance, issue, made)]),
        (issue_changes, [row for issue in made for row in _changes(issue)]),
        (prs, [_pull(chance, issue) for issue in made if issue["status"] in ("review", "done")]),
    ):
        for start in range(0, len(rows), 500):
            tx.run(sa.insert(table), rows[start : start + 500])
    return [issue["id"] for issue in made if issue["status"] == "todo"]


def _issue(chance: random.Random, project: str, number: int, status: str) -> Record:
    at = NOW_MS + number * 60_000
    what, how = chance.choice(("Login", "Upload", "Report", "Search")), chance.choice(("fails", "is slow"))
    return {
        "id": f"iss-bench-{number:06}",
        "tenant": DEFAULT_TENANT,
        "project_id": project,
        "identifier": identifier("DEF", number),
        "number": number,
        "parent_id": None,
        "title": f"{what} {how} {number}",
        "description": "What is to be done and why, in a few sentences that nobody shortened. " * 15,
        "status": status,
        "blocked_on": "person" if status == "blocked" else None,
        "phase": chance.choice(PHASES),
        "priority": chance.randint(1, 4),
        "size": None,
        "rejections": chance.choice((0, 0, 0, 1)),
        "created_by": "agt-bench",
        "author": "planner",
        "created_ms": at,
        "updated_ms": at + 30_000,
        "fence": 0,
        "run_id": None,
        **_lease(number, held=status == "in_progress"),
    }


def _lease(number: int, *, held: bool) -> Record:
    lease = {
        "lease_subject": "agt-bench",
        "lease_session": f"ses-{number}",
        "lease_name": f"agent {number % 9} (worker)",
        "lease_until_ms": NOW_MS * 2,
    }
    return lease if held else dict.fromkeys(lease)


def _labels(chance: random.Random, issue: Record) -> list[Record]:
    chosen = chance.sample(LABELS, chance.choice((0, 1, 2, 3)))
    return [{"issue_id": issue["id"], "label": label, "project_id": issue["project_id"]} for label in chosen]


def _dependencies(chance: random.Random, issue: Record, made: list[Record]) -> list[Record]:
    if issue["number"] < 10 or chance.random() > 0.2:
        return []
    return [{"issue_id": issue["id"], "depends_on": made[chance.randrange(issue["number"] - 1)]["id"]}]


def _changes(issue: Record) -> list[Record]:
    whose = {"tenant": DEFAULT_TENANT, "issue_id": issue["id"], "subject": "agt-bench", "author": "worker"}
    said = {"field": "status", "old": "backlog", "new": issue["status"], "why": "needs a decision", "at_ms": NOW_MS}
    return [{**whose, **said}, {**whose, **said, "field": "priority", "old": 3, "new": 2, "why": None}]


def _pull(chance: random.Random, issue: Record) -> Record:
    merged = issue["status"] == "done"
    return {
        "id": issue["id"].replace("iss", "pr"),
        "tenant": DEFAULT_TENANT,
        "project_id": issue["project_id"],
        "issue_id": issue["id"],
        "revision": 1,
        "branch": f"symphony/{issue['identifier']}",
        "base": "main",
        "diff": DIFF,
        "stats": {},
        "source_lines": 1200,
        "risk_score": chance.randint(0, 100),
        "risk_level": chance.choice(("low", "medium", "high")),
        "risk_reasons": [],
        "status": "merged" if merged else "open",
        "subject": "agt-bench",
        "created_ms": issue["created_ms"],
        "updated_ms": issue["updated_ms"],
    }
