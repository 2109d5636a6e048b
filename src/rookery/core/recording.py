"""From a call to its audit record."""

import asyncio
import time
from typing import Any

from rookery.core.actor import Actor
from rookery.core.context import Call
from rookery.core.errors import (
    ApprovalRequired,
    InternalError,
    InvalidParams,
    NotFound,
    PermissionDenied,
    RateLimited,
    RequestCancelled,
    RookeryError,
    TimedOut,
)
from rookery.core.ids import new_id
from rookery.core.questions import InputRequired
from rookery.core.record import Record, RecordOutcome, input_digest

_OUTCOMES: dict[type[RookeryError], RecordOutcome] = {
    PermissionDenied: "refused",
    ApprovalRequired: "refused",
    InvalidParams: "invalid",
    RateLimited: "refused",
    TimedOut: "timeout",
    RequestCancelled: "cancelled",
}


def to_record(call: Call, error: BaseException | None, *, intent: bool = False) -> Record:
    """The audit record of `call`, as far as it has come."""
    actor, tool = call.actor, call.tool
    outcome: RecordOutcome
    if isinstance(error, asyncio.CancelledError):
        outcome, code = "cancelled", RequestCancelled.code
    elif isinstance(error, InputRequired):
        outcome, code = "done", error.code
    elif isinstance(error, RookeryError):
        outcome, code = _OUTCOMES.get(type(error), "failed"), error.code
    elif error is not None:
        outcome, code = "failed", InternalError.code
    else:
        outcome, code = ("intent" if intent else "allowed" if tool.effect == "read" else "done"), None
    return Record(
        at_ms=call.at_ms,
        **whose(actor),
        request=call.id,
        trace=call.trace,
        tool=tool.name,
        effect=tool.effect,
        outcome=outcome,
        code=code,
        layer=error.layer if isinstance(error, RookeryError) else call.approval,
        input_digest=call.digest,
        duration_us=int((time.monotonic() - call.started) * 1_000_000),
    )


def unknown_record(
    actor: Actor, name: str, arguments: dict[str, Any], request_id: str | None, trace: str | None
) -> Record:
    """The audit record of a call of a tool that does not exist: somebody looked for it."""
    return Record(
        at_ms=time.time_ns() // 1_000_000,
        **whose(actor),
        request=request_id or new_id("req"),
        trace=trace,
        tool=name[:128],
        effect="none",
        outcome="refused",
        code=NotFound.code,
        layer="available",
        input_digest=input_digest(arguments)[0],
        duration_us=0,
    )


def whose(actor: Actor) -> dict[str, Any]:
    """The part of a record that says who called."""
    return {
        "tenant": actor.tenant,
        "kind": actor.kind,
        "subject": actor.subject,
        "agent": actor.agent,
        "profile": actor.profile,
        "project": actor.project,
        "issue": actor.issue,
        "session": actor.session,
        "source": actor.source,
    }
