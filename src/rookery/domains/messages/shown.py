"""Messages as their readers see them."""

from datetime import UTC, datetime
from typing import Any

from rookery.domains.messages.store import Row

MAX_SHOWN = 60_000
"""About so many characters are shown at once, but always at least one message whole."""


def entry(row: Row, reader: str) -> dict[str, Any]:
    """A message, with its answer if there is one. `kind` says what lies in the reader's inbox, `told` that a call of
    the reader was given it before."""
    shown: dict[str, Any] = {
        "id": row.id,
        "kind": "reply" if row.from_id == reader else "message",
        "from": row.from_name,
        "to": row.to_name,
        "thread": row.thread_id,
        "status": row.status,
        "message": row.content,
        "at": datetime.fromtimestamp(row.created_ms / 1000, UTC).isoformat(timespec="seconds"),
    }
    if row.told_ms is not None and row.mailbox == reader == row.from_id:
        shown["told"] = True
    if row.response is not None:
        shown["reply"] = row.response
    if row.error_code is not None:
        shown["error"] = f"{row.error_code}: {row.error}"
    return shown


def fitting(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the entries, from the first on, as may be shown at once."""
    shown: list[dict[str, Any]] = []
    room = MAX_SHOWN
    for each in entries:
        room -= len(each["message"]) + len(each.get("reply", ""))
        if shown and room < 0:
            break
        shown.append(each)
    return shown


def as_lines(each: dict[str, Any]) -> str:
    """One message in words."""
    head = f"[{each['id']}] {each['from']} to {each['to']}, {each['at']}, {each['status']}, thread {each['thread']}"
    parts = [f"{head}, told before" if each.get("told") else head, each["message"]]
    if "reply" in each:
        parts.append(f"Reply of {each['to']}: {each['reply']}")
    if "error" in each:
        parts.append(f"Error: {each['error']}")
    return "\n".join(parts)
