"""The audit record of a call: who called what, when, and how it ended. Never what was said."""

import hashlib
import json
from typing import Any, Literal, NamedTuple

RecordOutcome = Literal["allowed", "intent", "done", "refused", "invalid", "failed", "timeout", "cancelled"]


class Record(NamedTuple):
    """One row of the audit log. `input_digest` proves what was sent without keeping it."""

    at_ms: int
    tenant: str
    kind: str
    subject: str
    agent: str | None
    profile: str | None
    project: str | None
    issue: str | None
    session: str | None
    source: str
    request: str
    trace: str | None
    tool: str
    effect: str
    outcome: RecordOutcome
    code: str | None
    layer: str | None
    input_digest: str
    duration_us: int


COLUMNS = Record._fields


def input_digest(arguments: dict[str, Any]) -> tuple[str, int]:
    """SHA-256 over the arguments in a fixed order, and how long they are."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest(), len(text)
