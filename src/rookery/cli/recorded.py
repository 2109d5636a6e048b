"""Changes by the owner at the terminal that are no tool's: made and recorded in one transaction, like a call."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rookery import relay
from rookery.cli.session import actor_of

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.core.actor import Actor
    from rookery.core.record import Record
    from rookery.db.tx import Tx

T = TypeVar("T")


def change(
    platform: "Platform",
    flags: relay.Flags,
    command: str,
    arguments: dict[str, Any],
    work: "Callable[[Tx, Actor], T]",
) -> T:
    """What `work` makes of the database, as the session of these flags. The audit log has it as `cli:<command>`.

    A change that is refused leaves nothing but its record.
    """
    import asyncio

    actor = actor_of(platform, {"source": "cli", **flags})
    started = time.monotonic()

    def records(error: BaseException | None) -> "list[Record]":
        return [_record(actor, command, arguments, error, time.monotonic() - started)]

    return asyncio.run(platform.database.write(lambda tx: work(tx, actor), records=records))


def _record(
    actor: "Actor", command: str, arguments: dict[str, Any], error: BaseException | None, took_s: float
) -> "Record":
    from rookery.core.errors import InternalError, RookeryError
    from rookery.core.ids import new_id
    from rookery.core.record import Record, input_digest
    from rookery.core.recording import whose

    known = error if isinstance(error, RookeryError) else None
    return Record(
        at_ms=time.time_ns() // 1_000_000,
        **whose(actor),
        request=new_id("req"),
        trace=None,
        tool=f"cli:{command}",
        effect="write",
        outcome="done" if error is None else "failed",
        code=known.code if known is not None else None if error is None else InternalError.code,
        layer=known.layer if known is not None else None,
        input_digest=input_digest(arguments)[0],
        duration_us=int(took_s * 1_000_000),
    )
