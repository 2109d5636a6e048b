"""What has to hold when a history has come to rest. Each function returns a sentence for everything that is wrong."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.tables import comments, finding_processing, prs
from rookery.engine.tables import ENDED, dispatches, gate_runs
from rookery.identity.store import DEFAULT_TENANT
from rookery.ledger.rates import rates_of
from rookery.ledger.store import wallet_of
from rookery.ledger.tables import credit_accounts
from rookery.ledger.verify import faults
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.states import FINISHED
from tests.engine.simulation.truth import Truth

LIVE_RUNS = ("queued", "running")
Row = sa.Row[Any]


def wrong_at_rest(tx: Tx, truth: Truth, reachable: set[str]) -> list[str]:
    """All of them. `reachable` are the commits that a branch has, or that a working tree stands on."""
    return [
        *_everything_ended(tx),
        *_nothing_is_stuck(tx),
        *_costs_add_up(tx, truth),
        *_credits_add_up(tx),
        *_nothing_unsaved_is_gone(truth, reachable),
    ]


def _everything_ended(tx: Tx) -> Iterator[str]:
    for run in tx.all(sa.select(agent_runs).where(agent_runs.c.status.in_(LIVE_RUNS))):
        yield f"the run {run.id} of {run.issue_id} never ended"
    for row in tx.all(sa.select(dispatches).where(dispatches.c.state != ENDED)):
        yield f"the dispatch {row.id} of {row.issue_id} never ended: it is {row.state}"
    for row in tx.all(sa.select(gate_runs).where(gate_runs.c.ended_ms.is_(None))):
        yield f"the gates of the claim {row.claim_id} never ended"
    waiting = (
        sa.select(finding_processing)
        .join(issues, issues.c.id == finding_processing.c.issue_id)
        .where(finding_processing.c.processed_ms.is_(None), issues.c.status != "blocked")
    )
    for row in tx.all(waiting):
        yield f"the finding {row.finding_id} of {row.issue_id} was never acted on"


def _nothing_is_stuck(tx: Tx) -> Iterator[str]:
    for issue in tx.all(sa.select(issues).where(issues.c.status.not_in(FINISHED))):
        if not _waits_for_a_person(tx, issue):
            yield f"{issue.identifier} is stuck: it is {issue.status} in {issue.phase}"


def _waits_for_a_person(tx: Tx, issue: Row) -> bool:
    if issue.status == "blocked":
        told = sa.select(sa.func.count()).select_from(comments).where(comments.c.issue_id == issue.id)
        return issue.blocked_on == "subtasks" or tx.scalar(told) > 0
    newest = sa.select(prs).where(prs.c.issue_id == issue.id).order_by(prs.c.revision.desc()).limit(1)
    pr = tx.one(newest)
    return issue.status == "backlog" or (issue.status == "review" and pr is not None and pr.status == "approved")


def _costs_add_up(tx: Tx, truth: Truth) -> Iterator[str]:
    """What a run has cost is what its agent said, or nothing if nobody was left to hear it."""
    runs: Sequence[Row] = tx.all(sa.select(agent_runs))
    for run in runs:
        said = truth.spent_micros.get(run.id, 0)
        if run.cost_micros not in (0, said) or (run.status == "succeeded" and run.cost_micros != said):
            yield f"the run {run.id} ({run.status}) has cost {run.cost_micros}, and its agent said {said}"


def _credits_add_up(tx: Tx) -> Iterator[str]:
    yield from faults(tx, DEFAULT_TENANT)
    price = rates_of(tx, DEFAULT_TENANT)["credits_per_turn"]
    turns = sa.func.coalesce(sa.func.sum(agent_runs.c.turns), 0)
    used = sa.select(agent_runs.c.agent, turns.label("turns")).where(agent_runs.c.agent.is_not(None))
    spent = {wallet_of(row.agent): row.turns * price for row in tx.all(used.group_by(agent_runs.c.agent))}
    for account in tx.all(sa.select(credit_accounts)):
        if account.reserved:
            yield f"{account.wallet_address} still has {account.reserved} credits held back"
        expected = spent.get(account.wallet_address, 0)
        if account.total_consumed != expected:
            yield f"{account.wallet_address} has paid {account.total_consumed} credits for {expected} of work"


def _nothing_unsaved_is_gone(truth: Truth, reachable: set[str]) -> Iterator[str]:
    for path, text in truth.unsaved.items():
        if not os.path.exists(path):
            yield f"{path} was never committed and is gone"
        else:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    yield f"{path} was never committed and is not what was written"
    for commit in sorted(truth.commits - reachable):
        yield f"the commit {commit[:12]} is on no branch any more"
