"""Notes in a ledger of the outside world: the port, and what a note about an attestation says."""

import re
from dataclasses import dataclass
from typing import Protocol

PREFIX = "corvid-reputation:"
"""As other platforms write it, so that each finds the notes of the others."""
_NOTE = re.compile(r"corvid-reputation:([^:\s]{1,200}):([0-9a-f]{64})")


class Written(Protocol):
    """What a ledger is given. It never sees more: `payload` is all that is written, for whoever `owner` is."""

    @property
    def tenant(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def payload(self) -> bytes: ...


class NoteLedger(Protocol):
    """Takes an entry and gives the id of the transaction that wrote it. What fails raises, and wrote nothing."""

    async def put(self, entry: Written) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteEntry:
    """A note of an owner, such as `agent:agt_…`."""

    tenant: str
    owner: str
    payload: bytes


def reputation_note(agent_id: str, digest: str) -> bytes:
    """What is written of an attestation: in clear, so that anybody can find it."""
    return f"{PREFIX}{agent_id}:{digest}".encode()


def read_note(note: bytes) -> tuple[str, str] | None:
    """The agent and the hash that a note tells of; None if it is no such note."""
    try:
        found = _NOTE.fullmatch(note.decode())
    except UnicodeDecodeError:
        return None
    return (found[1], found[2]) if found is not None and found[1].isprintable() else None
