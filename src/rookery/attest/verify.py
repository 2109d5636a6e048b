"""Verifies a log of attestations from its bytes alone. Needs no database, no network and no trust in who served it."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from rookery.attest.canonical import NotCanonical, read_canonical, read_json, refuse_other_form, sha256
from rookery.attest.dsse import BadEnvelope, is_slight, opened, signer_of
from rookery.attest.keys import address_of, keyid_of, public_from
from rookery.attest.statements import MAX_BYTES, lacking, moment_of, shown, sound_id

STATEMENT = "application/vnd.rookery.reputation+json"
HEAD = "application/vnd.rookery.log-head+json"
GENESIS = "0" * 64
SHOWN = 10
KEY_FIELDS = 6
LEVELS = ((10, "verified"), (6, "high"), (3, "medium"), (1, "low"))
Fault = Literal["changed", "signature", "key_replaced", "chain", "cut", "other_agent", "statement", "unreachable"]


@dataclass(frozen=True, slots=True)
class Head:
    """How far a log went when it was last seen: so many entries, the newest with this hash."""

    count: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a log was found to be. With a `fault` nothing of it can be relied on; `why` says what is wrong.

    `hashes` and `statements` are those that held, oldest first; of a statement what is known is there, and no more.
    """

    agent_id: str = ""
    keyid: str = ""
    hashes: list[str] = field(default_factory=list[str])
    statements: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    fault: Fault | None = None
    why: str | None = None

    @property
    def count(self) -> int:
        return len(self.hashes)

    @property
    def level(self) -> str:
        """What the number of attestations stands for, if they hold."""
        return level_of(0 if self.fault else self.count)

    @property
    def head(self) -> Head | None:
        return Head(self.count, self.hashes[-1]) if self.hashes and not self.fault else None

    @property
    def newest(self) -> list[dict[str, Any]]:
        """The newest ten, newest first."""
        pairs = list(zip(self.hashes, self.statements, strict=True))[-SHOWN:]
        return [{**said, "hash": digest} for digest, said in reversed(pairs)]


class Broken(Exception):
    """Verification stops here."""

    def __init__(self, fault: Fault, why: str) -> None:
        super().__init__(why)
        self.fault: Fault = fault
        self.why = why


def level_of(count: int) -> str:
    """The trust that goes with so many attestations."""
    return next((level for least, level in LEVELS if count >= least), "untrusted")


def key_page(agent_id: str, public: str) -> dict[str, str]:
    """What is published of a key, by its 64 hexadecimal digits."""
    key = public_from(public)
    return {
        "agentId": agent_id,
        "keyid": keyid_of(key),
        "keytype": "ed25519",
        "public": public,
        "scheme": "ed25519",
        "wallet": address_of(key),
    }


def verify_log(document: bytes, *, keyid: str | None = None, seen: Head | None = None) -> Verified:
    """What the log is. `keyid` is the key that it must be signed with, and `seen` what it was before, if known."""
    checking = _Checking(keyid)
    try:
        checking.run(document)
    except Broken as broken:
        return checking.result(broken)
    found = checking.result(None)
    return found if seen is None else compared(found, seen)


def compared(found: Verified, seen: Head) -> Verified:
    """What was found, with a fault if it does not go through what was seen before."""
    if found.fault is not None:
        return found
    try:
        _refuse_cut(found.hashes, seen)
    except Broken as broken:
        return replace(found, fault=broken.fault, why=broken.why)
    return found


class _Checking:
    def __init__(self, keyid: str | None) -> None:
        self._expected = keyid
        self.agent_id = ""
        self.keyid = ""
        self.hashes: list[str] = []
        self.statements: list[dict[str, Any]] = []
        self._newest: datetime | None = None

    def result(self, broken: Broken | None) -> Verified:
        return Verified(
            agent_id=self.agent_id,
            keyid=self.keyid,
            hashes=self.hashes,
            statements=self.statements,
            fault=None if broken is None else broken.fault,
            why=None if broken is None else broken.why,
        )

    def run(self, document: bytes) -> None:
        parts = _log(document)
        self.agent_id = _sound(parts["agentId"])
        public = self._key(parts["key"])
        for number, envelope in enumerate(parts["attestations"], 1):
            self._entry(number, envelope, public)
        self._head(parts["head"], public)

    def _key(self, page: Any) -> Ed25519PublicKey:
        public = checked_key(page, self.agent_id)
        self.keyid = keyid_of(public)
        if self._expected is not None and self.keyid != self._expected:
            raise Broken(
                "key_replaced", f"the key was replaced: it is {_short(self.keyid)}, not {_short(self._expected)}"
            )
        return public

    def _entry(self, number: int, envelope: Any, public: Ed25519PublicKey) -> None:
        payload, said = self._opened(f"entry {number}", envelope, STATEMENT, public)
        _fields(said, f"entry {number}", number=int, previous=str)
        before = self.hashes[-1] if self.hashes else GENESIS
        if said["number"] > number:
            missing = f"entry {number} is" if said["number"] == number + 1 else f"{said['number'] - number} entries are"
            raise Broken("cut", f"the log was cut: {missing} missing before entry {said['number']}")
        if said["number"] != number or said["previous"] != before:
            raise Broken("chain", f"entry {number} does not follow from the one before it")
        self._refuse_unsaid(number, said)
        self.hashes.append(sha256(payload))
        self.statements.append(shown(said))

    def _refuse_unsaid(self, number: int, said: dict[str, Any]) -> None:
        """Refuse what states nothing, or states it of an earlier moment than the entry before."""
        missing, at = lacking(said), moment_of(said)
        if missing or at is None:
            raise Broken("statement", f"entry {number} is no statement of a score: {', '.join(missing)}")
        if self._newest is not None and at < self._newest:
            raise Broken("statement", f"entry {number} is older than the one before it")
        self._newest = at

    def _head(self, envelope: Any, public: Ed25519PublicKey) -> None:
        _, said = self._opened("the head", envelope, HEAD, public)
        _fields(said, "the head", count=int, hash=str)
        _refuse_cut(self.hashes, Head(said["count"], said["hash"]))
        if said["count"] != len(self.hashes):
            raise Broken("chain", f"the log has {len(self.hashes)} entries and its head speaks of {said['count']}")

    def _opened(self, what: str, envelope: Any, kind: str, public: Ed25519PublicKey) -> tuple[bytes, dict[str, Any]]:
        """The bytes that were signed, and what they say of the agent."""
        try:
            signer = signer_of(envelope)
            if signer != self.keyid:
                raise Broken(
                    "key_replaced",
                    f"the key was replaced: {what} was signed with {_short(signer)}, not {_short(self.keyid)}",
                )
            payload = opened(envelope, kind, public)
        except BadEnvelope as error:
            raise Broken("signature", f"{what} does not hold: {error}") from None
        said = _read(payload, what)
        if said.get("agentId") != self.agent_id:
            raise Broken("other_agent", f"{what} is about another agent than {self.agent_id[:100]}")
        return payload, said


def checked_key(page: Any, agent_id: str) -> Ed25519PublicKey:
    """The public key of a published page, if all that it says goes together; else Broken."""
    try:
        public = public_from(page["public"])
        same = page == key_page(_sound(agent_id), page["public"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Broken("changed", "what it says of its key is no Ed25519 key") from None
    if not same:
        raise Broken("changed", "what it says of its key does not go together")
    return public


def _sound(agent_id: str) -> str:
    if not sound_id(agent_id):
        raise Broken("changed", "what it calls its agent is no id")
    return agent_id


def _refuse_cut(hashes: list[str], seen: Head) -> None:
    if len(hashes) < seen.count:
        raise Broken("cut", f"the log was cut: it had {seen.count} entries, and {len(hashes)} are left")
    if seen.count > 0 and hashes[seen.count - 1] != seen.hash:
        raise Broken("chain", f"entry {seen.count} is another one than the log had there before")


def _log(document: bytes) -> dict[str, Any]:
    """The four parts of a log. What has another shape is refused before its form is looked at, which costs more."""
    try:
        found = read_json(document)
        if not isinstance(found, dict):
            raise Broken("changed", "the log is no JSON object")
        parts = _fields(
            cast("dict[str, Any]", found), "the log", agentId=str, attestations=list, head=dict, key=dict
        )  # fmt: skip
        key = cast("dict[str, Any]", parts["key"])
        if len(parts) != 4 or len(key) > KEY_FIELDS or not all(isinstance(each, str) for each in key.values()):
            raise Broken("changed", "the log has something in it that nobody signed")
        for number, envelope in enumerate([*parts["attestations"], parts["head"]], 1):
            if not is_slight(envelope, MAX_BYTES):
                what = "the head" if number > len(parts["attestations"]) else f"entry {number}"
                raise Broken("changed", f"{what} is no envelope with at most {MAX_BYTES} bytes in it")
        refuse_other_form(parts, document)
    except NotCanonical as error:
        raise Broken("changed", f"the log was changed: {error}") from None
    return parts


def _read(document: bytes, what: str) -> dict[str, Any]:
    try:
        found = read_canonical(document)
    except NotCanonical as error:
        raise Broken("changed", f"{what} was changed: {error}") from None
    if not isinstance(found, dict):
        raise Broken("changed", f"{what} is no JSON object")
    return cast("dict[str, Any]", found)


def _fields(found: dict[str, Any], what: str, **kinds: type) -> dict[str, Any]:
    wrong = [name for name, kind in kinds.items() if type(found.get(name)) is not kind]
    if wrong:
        raise Broken("changed", f"{what} lacks {', '.join(wrong)}, or has something else there")
    return found


def _short(keyid: str) -> str:
    """The start of a key's id, which may be anything that somebody wrote there."""
    return "".join(letter if letter.isprintable() else "?" for letter in keyid[:16]) + "…"
