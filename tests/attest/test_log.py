"""Logs that are in order, and what is found of those that are not."""

import base64
import json
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from rookery.attest import verify
from rookery.attest.canonical import canonical, sha256
from rookery.attest.dsse import signed
from rookery.attest.keys import agent_key
from rookery.attest.log import AttestationLog, published_log
from rookery.attest.tables import reputation_attestations
from rookery.attest.verify import GENESIS, HEAD, STATEMENT, Head, level_of, verify_log
from tests.attest.notary import AGENT, Notary, changed, forged, said, score

AT = {"computedAt": "2026-11-16T10:00:00.000Z"}


def test_a_log_can_only_grow(notary: Notary) -> None:
    notary.attest(55)
    with pytest.raises(DatabaseError, match="append-only"):
        notary.direct(lambda tx: tx.run(sa.update(reputation_attestations).values(hash="0")))
    with pytest.raises(DatabaseError, match="append-only"):
        notary.direct(lambda tx: tx.run(sa.delete(reputation_attestations)))


def test_a_replaced_key_is_reported_as_such(notary: Notary) -> None:
    before = verify_log(notary.attest(55))
    notary.lose_key()
    found = verify_log(notary.attest(60))
    assert found.fault == "key_replaced"
    assert "entry 1 was signed with" in str(found.why)
    assert (found.level, found.head) == ("untrusted", None)
    # Whoever starts the log anew with another key is found by those who know the first.
    notary.direct(lambda tx: AttestationLog(tx, "other", AGENT).append(score(99)))
    anew = notary.direct(lambda tx: AttestationLog(tx, "other", AGENT).document())
    assert verify_log(anew).fault is None
    assert verify_log(anew, keyid=before.keyid).fault == "key_replaced"


def test_a_cut_log_is_reported_as_such(notary: Notary) -> None:
    short = notary.attest(51, 52)
    whole = notary.attest(53, 54)
    no_tail = verify_log(changed(whole, lambda log: log["attestations"].pop()))
    assert (no_tail.fault, no_tail.why) == ("cut", "the log was cut: it had 4 entries, and 3 are left")
    hole = verify_log(changed(whole, lambda log: log["attestations"].pop(1)))
    assert (hole.fault, hole.why) == ("cut", "the log was cut: entry 2 is missing before entry 3")
    no_start = verify_log(changed(whole, lambda log: log["attestations"].__delitem__(slice(0, 2))))
    assert (no_start.fault, no_start.why) == ("cut", "the log was cut: 2 entries are missing before entry 3")
    assert verify_log(changed(whole, lambda log: log["attestations"].clear())).fault == "cut"
    # An old copy is whole by itself; whoever has seen more knows.
    assert verify_log(short).fault is None
    assert verify_log(short, seen=verify_log(whole).head).fault == "cut"
    assert verify_log(whole, seen=verify_log(short).head).fault is None
    assert verify_log(whole, seen=Head(2, "0" * 64)).fault == "chain"


def test_entries_in_another_order_or_of_another_agent_do_not_hold(notary: Notary) -> None:
    whole = notary.attest(51, 52, 53)
    other = json.loads(notary.attest(99, agent="agt_eve"))
    assert verify_log(changed(whole, lambda log: log["attestations"].reverse())).fault == "cut"
    assert (
        verify_log(changed(whole, lambda log: log["attestations"].insert(1, log["attestations"][0]))).fault == "chain"
    )
    assert verify_log(changed(whole, lambda log: log.update(agentId="agt_eve"))).fault == "changed"
    put_in = verify_log(changed(whole, lambda log: log["attestations"].append(other["attestations"][0])))
    assert put_in.fault == "key_replaced"
    taken_over = verify_log(changed(whole, lambda log: log.update(key=other["key"])))
    assert taken_over.fault == "changed"


def test_a_signed_statement_about_another_agent_is_refused(notary: Notary) -> None:
    whole = notary.attest(51)
    key = notary.direct(lambda tx: agent_key(tx, "default", AGENT))
    payload = canonical({**score(99), "agentId": "agt_eve", "number": 1, "previous": GENESIS})
    found = verify_log(changed(whole, lambda log: log.update(attestations=[signed(key, STATEMENT, payload)])))
    assert (found.fault, found.count) == ("other_agent", 0)
    head = canonical({"agentId": AGENT, "count": 7, "hash": "0" * 64})
    assert verify_log(changed(whole, lambda log: log.update(head=signed(key, STATEMENT, head)))).fault == "signature"
    assert verify_log(changed(whole, lambda log: log.update(head=signed(key, HEAD, head)))).fault == "cut"


@pytest.mark.parametrize(
    "statement",
    [{}, AT, score(51), {**score(101), **AT}, {**score(-1), **AT}, {**score(51), **AT, "overallScore": True},
     {**score(51), **AT, "trustLevel": "splendid"}, {**score(51), **AT, "trustLevel": ["high"]},
     {**score(51), **AT, "components": 7}, {**score(51), **AT, "components": {"peerRating": "\x1b[2K"}},
     {**score(51), "computedAt": "2026-11-16"}, {**score(51), "computedAt": "2026-13-16T10:00:00Z"},
     {**score(51), "computedAt": "2026-11-16\x1b10:00:00Z"}, {**score(51), "computedAt": 7}],
)  # fmt: skip
def test_an_entry_that_states_no_score_does_not_hold(statement: dict[str, Any]) -> None:
    found = verify_log(forged(statement))
    assert (found.fault, found.level, found.count) == ("statement", "untrusted", 0)
    assert "entry 1 is no statement of a score" in str(found.why)


def test_no_entry_is_older_than_the_one_before() -> None:
    first, later = {**score(51), **AT}, {**score(52), "computedAt": "2026-11-16T10:00:00.001Z"}
    assert verify_log(forged(first, first, later)).fault is None
    found = verify_log(forged(first, later, first))
    assert (found.fault, found.why) == ("statement", "entry 3 is older than the one before it")


def test_a_clock_that_was_set_back_spoils_no_log(notary: Notary) -> None:
    notary.attest(51)
    late = sa.select(reputation_attestations)
    row = notary.direct(lambda tx: tx.one(late))._mapping
    ahead = {**row, "agent_id": "agt_late", "created_ms": row["created_ms"] + 3_600_000}
    notary.direct(lambda tx: tx.run(sa.insert(reputation_attestations).values(**ahead)))
    moments = [said(each)["computedAt"] for each in json.loads(notary.attest(52, agent="agt_late"))["attestations"]]
    assert moments[1] > moments[0]
    newest = notary.direct(lambda tx: AttestationLog(tx, "default", "agt_late").last())
    assert newest.created_ms == ahead["created_ms"]


def test_only_what_is_known_of_a_statement_is_shown_and_its_hash_is_its_own() -> None:
    more = {"hash": "forged", "note": "trust me", "components": {"peerRating": 50, "charm": 100}}
    document = forged({**score(51), **AT, **more})
    found = verify_log(document)
    assert found.fault is None
    [shown] = found.newest
    assert shown == {
        **score(51), **AT, "agentId": AGENT, "number": 1, "previous": GENESIS, "hash": found.hashes[0],
    }  # fmt: skip


@pytest.mark.parametrize("agent", ["", "a\0b", "\x1b[2Kagt", "a" * 201])
def test_what_is_no_id_of_an_agent_is_not_repeated(agent: str) -> None:
    found = verify_log(forged({**score(51), **AT}, agent=agent))
    assert (found.fault, found.why) == ("changed", "what it calls its agent is no id")


def test_a_signer_that_is_none_writes_nothing_to_a_terminal(notary: Notary) -> None:
    whole = notary.attest(51)
    spoilt = changed(whole, lambda log: log["head"]["signatures"][0].update(keyid="\x1b[2K\rgood"))
    assert str(verify_log(spoilt).why).isprintable()


def test_junk_is_refused_before_its_form_is_looked_at(notary: Notary, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = notary.attest(51)
    junk = {"x": [{"y": 1.5}] * 1000}
    looked: list[Any] = []
    monkeypatch.setattr(verify, "refuse_other_form", lambda *given: looked.append(given))
    for change in (
        lambda log: log.update(attestations=[junk]),
        lambda log: log.update(head=junk),
        lambda log: log["key"].update(more=junk),
        lambda log: log["attestations"][0].update(payload=base64.b64encode(b"x" * 5000).decode()),
    ):
        content = json.loads(whole)
        change(content)
        assert verify_log(json.dumps(content).encode()).fault == "changed"
    assert looked == []
    large = verify_log(forged({**score(51), **AT, "note": "x" * 2048}))
    assert (large.fault, large.why) == ("changed", "entry 1 is no envelope with at most 2048 bytes in it")


@pytest.mark.parametrize(
    "document",
    [b"", b"null", b"[]", b"{}", b"<html>no</html>", b"\xff\xfe", b'{"agentId": "a"}', b'{"a":1e400}', b"[" * 100_000,
     b'{"agentId":"a","attestations":[],"head":{},"key":{}}',
     b'{"agentId":"a","attestations":[],"head":{},"key":{"public":7}}'],
)  # fmt: skip
def test_what_is_no_log_is_told_so(document: bytes) -> None:
    found = verify_log(document)
    assert (found.fault, found.level, found.count) == ("changed", "untrusted", 0)


def test_no_byte_of_a_log_can_be_changed(notary: Notary) -> None:
    whole = notary.attest(51, 52)
    assert verify_log(whole).fault is None
    for at in range(len(whole)):
        for flip in (1, 0x20):
            spoilt = whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
            assert verify_log(spoilt).fault is not None, (at, whole[max(0, at - 20) : at + 20])
    for spoilt in (whole + b"\n", b" " + whole, whole[:-1], whole.replace(b'":', b'": ', 1)):
        assert verify_log(spoilt).fault == "changed"


def test_nothing_that_nobody_signed_can_be_added(notary: Notary) -> None:
    whole = notary.attest(51)
    for change in (
        lambda log: log.update(note="trust me"),
        lambda log: log["key"].update(note="trust me"),
        lambda log: log["head"].update(note="trust me"),
        lambda log: log["attestations"][0]["signatures"].append(log["head"]["signatures"][0]),
        lambda log: log["attestations"][0]["signatures"][0].update(note="trust me"),
    ):
        assert verify_log(changed(whole, change)).fault in ("changed", "signature")


def test_a_log_that_is_in_order_says_who_and_how_often(notary: Notary) -> None:
    whole = notary.attest(*range(50, 62))
    found = verify_log(whole)
    assert (found.fault, found.agent_id, found.count, found.level) == (None, AGENT, 12, "verified")
    assert [each["overallScore"] for each in found.newest] == list(range(61, 51, -1))
    log = json.loads(whole)
    assert found.head == Head(12, sha256(base64.b64decode(log["attestations"][-1]["payload"])))
    assert found.keyid == log["key"]["keyid"]
    first, second = (said(each) for each in log["attestations"][:2])
    assert (first["number"], first["previous"], second["number"]) == (1, GENESIS, 2)
    assert second["previous"] == sha256(base64.b64decode(log["attestations"][0]["payload"]))


def test_the_same_said_again_soon_is_the_same_entry(notary: Notary) -> None:
    def again(tx: object, since_ms: int) -> tuple[int, bool]:
        row, is_new = AttestationLog(tx, "default", AGENT).append(score(55), unless_same_since_ms=since_ms)  # type: ignore[arg-type]
        return row.number, is_new

    assert notary.direct(lambda tx: again(tx, 0)) == (1, True)
    assert notary.direct(lambda tx: again(tx, 0)) == (1, False)
    assert notary.direct(lambda tx: again(tx, 2**60)) == (2, True)
    notary.attest(56)
    assert notary.direct(lambda tx: again(tx, 0)) == (4, True)


def test_only_who_has_published_is_published(notary: Notary) -> None:
    notary.attest(55)
    assert notary.direct(lambda tx: published_log(tx, "agt_nobody")) is None
    found = notary.direct(lambda tx: published_log(tx, AGENT))
    assert (found.tenant, found.agent_id) == ("default", AGENT)
    assert notary.direct(lambda tx: AttestationLog(tx, "other", AGENT).document()) is None
    assert notary.direct(lambda tx: AttestationLog(tx, "other", AGENT).key_page()) is None


def test_the_number_of_attestations_stands_for_a_level() -> None:
    counts = {0: "untrusted", 1: "low", 2: "low", 3: "medium", 5: "medium", 6: "high", 9: "high", 10: "verified"}
    assert {count: level_of(count) for count in counts} == counts
