import asyncio
from typing import Any, cast

import pytest
import sqlalchemy as sa

from rookery.attest.notes import read_note
from rookery.attest.tables import attestation_notes, reputation_attestations
from rookery.attest.verify import verify_log
from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, ServiceUnavailable
from rookery.domains.reputation.tables import agent_reputation
from rookery.domains.reputation.tools import NO_LEDGER
from tests.domains.reputation.bench import Bench
from tests.domains.reputation.elsewhere import log_of


class Chain:
    """A ledger of the outside world that keeps what it is given, once it is in order."""

    def __init__(self) -> None:
        self.broken = False
        self.notes: list[Any] = []

    async def put(self, entry: Any) -> str:
        if self.broken:
            raise ServiceUnavailable("the node is away", hint="wait")
        self.notes.append(entry)
        return f"TX{len(self.notes)}"


def use(bench: Bench, ledger: Any) -> None:
    cast("dict[str, Any]", bench.fleet.platform.calls.facts)["ledger"] = ledger


async def publish(bench: Bench, actor: Actor, **arguments: Any) -> dict[str, Any]:
    return (await bench.fleet.call(actor, "publish_attestation", **arguments)).model_dump()


async def test_an_agent_attests_for_nobody_else(bench: Bench) -> None:
    ada = await bench.agent("ada")
    await bench.agent("bob")
    with pytest.raises(PermissionDenied, match="only for itself"):
        await publish(bench, ada, agent_id="bob")
    with pytest.raises(NotFound):
        await publish(bench, bench.stranger, agent_id=ada.agent)
    with pytest.raises(InvalidParams, match="agent_id"):
        await publish(bench, bench.fleet.owner)
    assert bench.rows(sa.select(reputation_attestations)) == []


async def test_without_a_ledger_it_is_in_the_local_log_alone(bench: Bench) -> None:
    ada = await bench.agent("ada")
    told = await publish(bench, ada)
    assert (told["overall_score"], told["trust_level"], told["number"], told["repeated"]) == (55, "medium", 1, False)
    assert (told["on_chain"], told["why_not"]) == (False, NO_LEDGER)
    assert "algorand_algod_url" in NO_LEDGER
    assert told["log"] == f"/attestations/{ada.agent}/log.json"
    found = verify_log(log_of(bench, ada))
    assert (found.fault, found.agent_id, found.hashes) == (None, ada.agent, [told["hash"]])
    assert found.statements[0] | {"computedAt": ""} == {
        "agentId": ada.agent,
        "overallScore": 55,
        "trustLevel": "medium",
        "components": {
            "taskCompletion": 50,
            "peerRating": 50,
            "creditPattern": 50,
            "securityCompliance": 100,
            "activityLevel": 0,
        },
        "computedAt": "",
        "number": 1,
        "previous": "0" * 64,
    }
    look = await bench.look(ada)
    assert look["attestation_hash"] == told["hash"]
    assert [each["type"] for each in look["events"]] == ["attestation_published"]


async def test_the_same_score_of_the_same_day_is_attested_once(bench: Bench) -> None:
    ada = await bench.agent("ada")
    first, again = await publish(bench, ada), await publish(bench, ada, agent_id="ada")
    assert (again["hash"], again["number"], again["repeated"]) == (first["hash"], 1, True)
    bench.note(ada, "session_completed")
    other = await publish(bench, bench.fleet.owner, agent_id="ada")
    assert (other["number"], other["repeated"], other["overall_score"]) == (2, False, 56)
    found = verify_log(log_of(bench, ada))
    assert (found.fault, found.hashes) == (None, [first["hash"], other["hash"]])
    [row] = bench.rows(sa.select(agent_reputation.c.attestation_hash))
    assert row.attestation_hash == other["hash"]


async def test_of_those_who_publish_at_the_same_moment_one_is_first(bench: Bench) -> None:
    ada = await bench.agent("ada")
    told = await asyncio.gather(*(publish(bench, ada) for _ in range(6)))
    assert sorted(each["repeated"] for each in told) == [False] + [True] * 5
    assert {each["number"] for each in told} == {1}
    assert verify_log(log_of(bench, ada)).count == 1


async def test_with_a_ledger_a_note_in_clear_goes_there(bench: Bench) -> None:
    ada, chain = await bench.agent("ada"), Chain()
    use(bench, chain)
    told = await publish(bench, ada)
    assert (told["on_chain"], told["txid"]) == (True, "TX1")
    [note] = chain.notes
    assert (note.tenant, note.owner) == ("default", f"agent:{ada.agent}")
    assert read_note(note.payload) == (ada.agent, told["hash"])
    again = await publish(bench, ada)
    assert (again["repeated"], again["txid"], len(chain.notes)) == (True, "TX1", 1)


async def test_a_ledger_out_of_reach_leaves_the_local_log_and_is_tried_again(bench: Bench) -> None:
    ada, chain = await bench.agent("ada"), Chain()
    chain.broken = True
    use(bench, chain)
    told = await publish(bench, ada)
    assert (told["on_chain"], told["why_not"]) == (False, "the node is away; wait")
    assert verify_log(log_of(bench, ada)).count == 1
    assert bench.rows(sa.select(attestation_notes)) == []
    chain.broken = False
    again = await publish(bench, ada)
    assert (again["repeated"], again["number"], again["txid"]) == (True, 1, "TX1")
