"""How a turn of a session begins and ends, and what is said of it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rookery.core.errors import RookeryError
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a turn begins with. Only what a person sent has an `id`."""

    text: str
    sent_by: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends. `by_agent`: its agent said so itself, and lives on. A `lost` one may be asked for again."""

    reason: Reason
    outcome: Outcome
    by_agent: bool = False
    lost: bool = False


def turn_input(said: Said) -> SessionEvent:
    """The first event of a turn."""
    return SessionEvent("turn_input", {"message_id": said.id, "text": said.text, "from": said.sent_by})


def failed(error: str, *, reason: Reason = "failed", lost: bool = False) -> Ending:
    """The end of a turn whose agent has not said how it ended."""
    return Ending(reason, Outcome("failed", error=error, turns=0, stalled=reason == "stalled"), lost=lost)


def said_of(error: BaseException) -> str:
    """What a person is told of an error."""
    if isinstance(error, RookeryError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def unreachable(servers: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each MCP server that an agent could not connect to."""
    failed = [server for server in servers if server.get("status") == "failed"]
    reasons = [f": {server['error']}" if server.get("error") else "" for server in failed]
    names = [server.get("name") for server in failed]
    return [f"the MCP server {name} cannot be reached{why}" for name, why in zip(names, reasons, strict=True)]


def ending_of(data: Mapping[str, Any]) -> Ending:
    """What an agent says of its end. What is no number counts as nothing: see `Outcome`."""
    reason: Reason = data.get("reason", "completed")
    outcome = Outcome(
        "done" if reason == "completed" else "failed",
        output=str(data.get("output") or ""),
        error=str(data.get("error") or ("" if reason == "completed" else reason)),
        cost_usd=float(data.get("cost_usd") or 0.0),
    )
    counts = {name: data[name] for name in ("turns", "input_tokens", "output_tokens") if data.get(name) is not None}
    return Ending(reason, replace(outcome, **counts), by_agent=True)
