"""Notes on Algorand, against a node that checks encoding and signature."""

import base64
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

import rookery
from rookery.attest.algorand import AlgorandLedger, signed_note
from rookery.attest.keys import address_of, agent_key
from rookery.attest.notes import NoteEntry, read_note, reputation_note
from rookery.core.errors import ConfigurationError, ServiceUnavailable, ValidationFailed
from tests.attest.algod import Algod, algod, checked
from tests.platform_fixtures import Fleet

SEED = bytes(range(32))
PARAMS = {
    "fee": 0, "min-fee": 1000, "last-round": 7, "genesis-id": "tests-v1",
    "genesis-hash": base64.b64encode(b"g" * 32).decode(),
}  # fmt: skip


def note(payload: bytes = b"corvid-reputation:agt_ada:x") -> NoteEntry:
    return NoteEntry(tenant="default", owner="agent:agt_ada", payload=payload)


@pytest.fixture
async def node() -> AsyncIterator[Algod]:
    async with algod() as made:
        yield made


@pytest.fixture
def ledger(node: Algod) -> AlgorandLedger:
    async def seeds(tenant: str, owner: str) -> bytes:
        assert (tenant, owner) == ("default", "agent:agt_ada")
        return SEED

    return AlgorandLedger(node.url, node.token, seeds)


async def test_a_note_that_is_too_long_never_leaves(ledger: AlgorandLedger, node: Algod) -> None:
    with pytest.raises(ValidationFailed, match="at most 1024 bytes, and this has 1025"):
        await ledger.put(note(b"x" * 1025))
    assert node.web.seen == []


async def test_a_fee_without_measure_is_not_paid(ledger: AlgorandLedger, node: Algod) -> None:
    node.fee = 1_000_000
    with pytest.raises(ValidationFailed, match="millionths of an Algo"):
        await ledger.put(note())
    assert node.blocks == {}


async def test_a_wrong_token_is_refused_and_not_repeated_in_the_error(node: Algod) -> None:
    async def seeds(tenant: str, owner: str) -> bytes:
        return SEED

    with pytest.raises(ServiceUnavailable, match=r"401\): Invalid API Token") as caught:
        await AlgorandLedger(node.url, "wrong-token", seeds).put(note())
    assert "wrong-token" not in str(caught.value)


async def test_what_the_network_drops_was_not_written(ledger: AlgorandLedger, node: Algod) -> None:
    node.pool_error = "overspend"
    with pytest.raises(ServiceUnavailable, match="the network refused it: overspend"):
        await ledger.put(note())
    node.pool_error, node.confirm_after = "", 1000
    with pytest.raises(ServiceUnavailable, match="no block has the transaction"):
        await ledger.put(note(b"another"))


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"fee":"x"}'])
async def test_what_is_no_node_is_told_so(ledger: AlgorandLedger, node: Algod, body: bytes) -> None:
    node.web.act = None
    node.web.says("/v2/transactions/params", body=body)
    with pytest.raises(ServiceUnavailable):
        await ledger.put(note())


async def test_redirects_are_not_followed(ledger: AlgorandLedger, node: Algod) -> None:
    async with algod() as other:
        node.web.act = None
        node.web.says("/v2/transactions/params", 307, location=f"{other.url}/v2/transactions/params")
        with pytest.raises(ServiceUnavailable):
            await ledger.put(note())
        assert other.web.seen == []


async def test_a_note_is_in_a_block_afterwards_and_twice_is_refused(ledger: AlgorandLedger, node: Algod) -> None:
    txid = await ledger.put(note())
    [(known, transaction)] = node.blocks.items()
    assert known == txid
    assert transaction["note"] == b"corvid-reputation:agt_ada:x"
    assert transaction["fee"] == 1000
    with pytest.raises(ServiceUnavailable, match="overlapping lease") as caught:
        await ledger.put(note())
    assert "may be in a block" in str(caught.value.hint)
    assert len(node.blocks) == 1


@pytest.mark.parametrize("wrong", ["é", "AAA"])
def test_a_node_that_says_nonsense_is_told_so(wrong: str) -> None:
    with pytest.raises(ServiceUnavailable, match="does not say how to send"):
        signed_note(SEED, PARAMS | {"genesis-hash": wrong}, b"note")


def test_a_changed_byte_breaks_the_signature() -> None:
    _, packed = signed_note(SEED, PARAMS, b"note")
    assert checked(packed)[1]["note"] == b"note"
    sent = msgpack.unpackb(packed)
    sent["txn"]["note"] = b"nope"
    spoilt: Any = msgpack.packb(sent, use_bin_type=True)
    with pytest.raises(ValueError, match="didn't pass verification"):
        checked(spoilt)


def test_without_the_library_it_is_said_what_to_install() -> None:
    """In a process in which the library cannot be imported."""
    program = (
        "import sys; sys.modules['algosdk'] = None\n"
        "from rookery.attest.algorand import signed_note\n"
        "from rookery.core.errors import ConfigurationError\n"
        "try: signed_note(bytes(32), {}, b'')\n"
        "except ConfigurationError as error: print(error.hint)\n"
    )
    source = str(Path(rookery.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": source}, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    assert done.stdout == "pip install 'rookery[algorand]'\n"
    assert ConfigurationError.code == "CONFIGURATION_ERROR"


async def test_attestations_and_memories_go_to_the_ledger_of_the_settings(
    node: Algod, database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    key_file = tmp_path / "key"
    key_file.write_bytes(bytes(range(64)))
    key_file.chmod(0o600)
    given = {"algorand_algod_url": node.url, "algorand_algod_token": node.token, "key_file": str(key_file)}
    fleet = make_fleet(database_url, extra={}, **given)
    ada = fleet.actor()
    agent = ada.agent or ""
    told = (await fleet.call(ada, "publish_attestation")).model_dump()
    assert told["on_chain"]
    payment = node.blocks[told["txid"]]
    assert payment["note"] == reputation_note(agent, told["hash"])
    assert read_note(payment["note"]) == (agent, told["hash"])
    key = fleet.platform.database.direct(lambda tx: agent_key(tx, "default", agent))
    assert payment["snd"] == key.public_key().public_bytes_raw()
    assert len(address_of(key.public_key())) == 58
    await fleet.call(ada, "save_memory", key="tea", content="the heron drinks tea")
    promoted = await fleet.call(ada, "promote_memory", key="tea")
    sealed = node.blocks[promoted.txid]["note"]
    assert b"heron" not in sealed
    assert b"heron" in fleet.platform.calls.facts["keyring"].open("memory-ledger", sealed, _row_id(fleet)).encode()


def _row_id(fleet: Fleet) -> str:
    return fleet.platform.database.direct(lambda tx: tx.first("SELECT id FROM memories"))[0]  # type: ignore[index]
