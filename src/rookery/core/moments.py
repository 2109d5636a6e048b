"""Times as readers see them."""

from datetime import UTC, datetime
from typing import Any


def iso(at_ms: int | None) -> str | None:
    """A time in milliseconds since 1970 as ISO 8601 in UTC, to the second."""
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")


def with_moments(fields: dict[str, Any]) -> dict[str, Any]:
    """The same fields, with `created_ms` and the like as `created_at` in ISO 8601."""
    return {
        f"{name.removesuffix('_ms')}_at" if name.endswith("_ms") else name: iso(value)
        if name.endswith("_ms")
        else value
        for name, value in fields.items()
    }
