"""What an attestation may say: the score of an agent at a moment. Anything else in it is shown to nobody."""

import re
from datetime import datetime
from typing import Any, cast

MAX_BYTES = 2048
MAX_ID = 200
TRUST = frozenset({"untrusted", "low", "medium", "high", "verified"})
COMPONENTS = ("taskCompletion", "peerRating", "creditPattern", "securityCompliance", "activityLevel")
FIELDS = ("agentId", "overallScore", "trustLevel", "computedAt", "number", "previous")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")
Json = dict[str, Any]


def sound_id(text: Any) -> bool:
    """Whether this can be the id of an agent: short, and in letters that every terminal and database takes."""
    return isinstance(text, str) and 1 <= len(text) <= MAX_ID and text.isprintable()


def lacking(said: Json) -> list[str]:
    """The names of what a statement does not say, or not as it has to be said."""
    trust, parts = said.get("trustLevel"), said.get("components")
    sound = {
        "overallScore": _is_score(said.get("overallScore")),
        "trustLevel": isinstance(trust, str) and trust in TRUST,
        "components": isinstance(parts, dict) and all(_is_score(each) for each in _known(cast(Json, parts)).values()),
        "computedAt": moment_of(said) is not None,
    }
    return [name for name, holds in sound.items() if not holds]


def moment_of(said: Json) -> datetime | None:
    """When the statement says that it was made; None if it does not."""
    at = said.get("computedAt")
    try:
        return datetime.fromisoformat(at) if isinstance(at, str) and _MOMENT.fullmatch(at) else None
    except ValueError:
        return None


def shown(said: Json) -> Json:
    """What is shown of a statement that lacks nothing."""
    return {**{name: said[name] for name in FIELDS}, "components": _known(said["components"])}


def _known(parts: Json) -> Json:
    return {name: parts[name] for name in COMPONENTS if name in parts}


def _is_score(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 100
