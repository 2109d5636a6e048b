"""What an agent elsewhere says of itself, made plain. Imports the SDK: import this inside functions only."""

from typing import Any, cast

from a2a.client.card_resolver import parse_agent_card
from a2a.types.a2a_pb2 import AgentCard
from google.protobuf.json_format import ParseError

from rookery.core.admission import storable

MAX_TEXT = 2_000
MAX_LISTED = 50
MAX_TAGS = 10
MAX_SKILLS_TEXT = 20_000
"""What all skills together may say: agents read the whole card."""
Json = dict[str, Any]


class Unreadable(Exception):
    """This is no card, and the text says why."""


def read_card(raw: Any, base: str) -> Json:
    """The card as it is kept: short, clean texts and nothing else. Unreadable without a name and a version."""
    if not isinstance(raw, dict):
        raise Unreadable("the answer is no JSON object")
    given = cast(Json, raw)
    own = {"authentication": given.get("authentication"), "supportedProtocols": given.get("supportedProtocols")}
    plain = not any(key in given for key in ("supportedInterfaces", "protocolVersion", "preferredTransport"))
    try:
        card = parse_agent_card(given)
    except (ParseError, RecursionError) as error:
        raise Unreadable(f"the card cannot be read: {_text(str(error), 200)}") from error
    except Exception as error:
        # The SDK goes through the card before it has looked at the kinds of its parts.
        raise Unreadable("the card cannot be read") from error
    for key in ("name", "version"):
        if not getattr(card, key).strip():
            raise Unreadable(f"the card has no {key}")
    return _kept(card, own, base, plain=plain)


def _kept(card: AgentCard, own: Json, base: str, *, plain: bool) -> Json:
    interfaces = [
        {"url": each.url, "binding": each.protocol_binding, "version": each.protocol_version, "tenant": each.tenant}
        for each in card.supported_interfaces[:MAX_LISTED]
        if _is_kept(each.url + each.protocol_binding + each.protocol_version + each.tenant)
    ]
    return {
        "name": _text(card.name, 200),
        "version": _text(card.version, 100),
        "description": _text(card.description),
        "url": _text(interfaces[0]["url"]) if interfaces else base,
        "provider": _text(" ".join(part for part in (card.provider.organization, card.provider.url) if part), 400),
        "documentation": _text(card.documentation_url, 400),
        "streaming": card.capabilities.streaming,
        "push": card.capabilities.push_notifications,
        "auth": _auth(card, own),
        "input_modes": _texts(card.default_input_modes),
        "output_modes": _texts(card.default_output_modes),
        "skills": _skills(card),
        "protocols": _protocols(own["supportedProtocols"]),
        "interfaces": interfaces,
        # Such a card is of the days before there was a protocol to name: tasks are posted as plain JSON.
        "wire": "plain" if plain else "rpc",
    }


def _is_kept(words: str) -> bool:
    """Whether a way to the agent can be kept: cut short it would lead elsewhere."""
    return len(words) <= MAX_TEXT and storable(words)


def _skills(card: AgentCard) -> list[Json]:
    """The first skills, as many as there is room for."""
    listed: list[Json] = []
    room = MAX_SKILLS_TEXT
    for skill in card.skills[:MAX_LISTED]:
        said = {
            "id": _text(skill.id, 200), "name": _text(skill.name, 200), "description": _text(skill.description, 400),
            "tags": _texts(skill.tags[:MAX_TAGS]),
        }  # fmt: skip
        room -= sum(len(text) for part in said.values() for text in part)
        if room < 0:
            break
        listed.append(said)
    return listed


def _auth(card: AgentCard, own: Json) -> list[str]:
    schemes = cast(Json, own["authentication"]).get("schemes") if isinstance(own["authentication"], dict) else None
    old = [each for each in cast("list[Any]", schemes) if isinstance(each, str)] if isinstance(schemes, list) else []
    return _texts(dict.fromkeys([*card.security_schemes, *old]))


def _protocols(listed: Any) -> list[str]:
    if not isinstance(listed, list):
        return []
    entries = [cast(Json, each) for each in cast("list[Any]", listed)[:MAX_LISTED] if isinstance(each, dict)]
    words = ([each.get(key) for key in ("protocol", "endpoint")] for each in entries)
    return _texts(" ".join(word for word in some if isinstance(word, str)) for some in words)


def _texts(texts: Any) -> list[str]:
    return [_text(each, 200) for each in list(texts)[:MAX_LISTED]]


def _text(text: str, most: int = MAX_TEXT) -> str:
    """One line without control characters, at most so long."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text[: most * 2]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
