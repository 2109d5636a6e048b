from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.tracker.claim_store import Claims, NewClaim, NewVerdict
from rookery.domains.tracker.tables import artifacts, findings
from tests.domains.tracker.desk import Desk

HASH = "a" * 64
CLAIM = NewClaim(
    phase="research",
    contract_version=1,
    summary="done",
    open_questions=[],
    confidence="low",
    artifact_path="docs/tickets/DEF-001/research.md",
    artifact_hash=HASH,
    content="# Research\n",
    recommended_next_phase="grooming",
)


async def add_claims(desk: Desk, *claims: NewClaim) -> tuple[sa.Row[Any], list[sa.Row[Any]]]:
    issue = await desk.issue(phase="research")
    actor = desk.actor("researcher", issue)
    write = desk.fleet.platform.database.direct
    return issue, [write(lambda tx, new=new: Claims(tx, actor).add_claim(issue, new), write=True) for new in claims]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE findings SET category = 'bug'",
        "UPDATE findings SET payload = '{}' WHERE category = 'phase_completion'",
        "DELETE FROM findings",
        "DELETE FROM findings WHERE id LIKE 'pc-%'",
        "INSERT INTO findings (id, tenant, issue_id, category, author, subject, payload, created_ms) "
        "SELECT id, tenant, issue_id, 'bug', author, subject, payload, created_ms FROM findings WHERE true "
        "ON CONFLICT (id) DO UPDATE SET category = 'bug'",
    ],
    ids=["update", "update some", "delete", "delete some", "upsert"],
)
async def test_a_finding_is_never_changed_or_deleted(desk: Desk, statement: str) -> None:
    await add_claims(desk, CLAIM)
    before = desk.rows(sa.select(findings))
    with pytest.raises(Exception, match="findings is append-only"):
        desk.change(sa.text(statement))
    assert desk.rows(sa.select(findings)) == before


async def test_a_finding_is_not_replaced_nor_the_table_emptied(desk: Desk) -> None:
    await add_claims(desk, CLAIM)
    before = desk.rows(sa.select(findings))
    sqlite = desk.fleet.platform.database.direct(lambda tx: tx.dialect) == "sqlite"
    others = "tenant, issue_id, run_id, 'bug', author, subject, payload, 1 FROM findings"
    tries = [f"INSERT OR REPLACE INTO findings SELECT seq, {named}, {others}" for named in ("id", "'other'")]
    for statement in tries if sqlite else ["TRUNCATE findings", "TRUNCATE findings CASCADE"]:
        with pytest.raises(Exception, match="findings is append-only"):
            desk.change(sa.text(statement))
    assert desk.rows(sa.select(findings)) == before


async def test_the_latest_claim_of_a_phase_is_the_newest_of_it(desk: Desk) -> None:
    later = replace(CLAIM, artifact_hash="b" * 64, summary="better")
    other = replace(CLAIM, phase="architecture")
    issue, made = await add_claims(desk, CLAIM, later, other)
    read = desk.fleet.platform.database.direct
    latest = read(lambda tx: Claims(tx, desk.owner).latest(issue.id, "research"))
    assert latest is not None
    assert (latest.finding_id, latest.artifact_hash, latest.processed_ms) == (made[1].id, "b" * 64, None)
    assert latest.payload["summary"] == "better"
    assert read(lambda tx: Claims(tx, desk.owner).latest(issue.id, "grooming")) is None
    assert read(lambda tx: Claims(tx, desk.owner).latest("iss-none", "research")) is None


async def test_the_same_content_is_kept_once_for_each_issue(desk: Desk) -> None:
    await add_claims(desk, CLAIM, CLAIM)
    await add_claims(desk, CLAIM)
    assert desk.count(findings) == 3
    assert [row.content for row in desk.rows(sa.select(artifacts))] == ["# Research\n"] * 2


async def test_a_verdict_is_a_finding_of_the_claims_phase_and_hash(desk: Desk) -> None:
    issue, (claim,) = await add_claims(desk, CLAIM)
    judge = desk.actor("judge", issue)
    write = desk.fleet.platform.database.direct
    latest = write(lambda tx: Claims(tx, judge).latest(issue.id, "research"))
    assert latest is not None
    new = NewVerdict(verdict="approved", reason="")
    verdict = write(lambda tx: Claims(tx, judge).add_verdict(issue, latest, new), write=True)
    assert verdict.seq > claim.seq
    assert (verdict.payload["phase"], verdict.payload["artifact_hash"]) == ("research", HASH)
