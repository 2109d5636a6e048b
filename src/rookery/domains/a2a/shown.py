"""Cards as their readers see them."""

from typing import Any

Json = dict[str, Any]
_SHOWN = (
    "name", "version", "description", "url", "provider", "documentation", "streaming", "push", "auth", "input_modes",
    "output_modes", "skills", "protocols", "at",
)  # fmt: skip


def in_short(card: Json) -> Json:
    """The card without what only the way to the agent needs."""
    return {name: card[name] for name in _SHOWN if name in card}


def as_lines(card: Json) -> str:
    """A card in words. What it says is the agent's own word."""
    lines = [f"{card['name']} {card['version']}, at {card['at']}"]
    told = {
        "": card["description"],
        "Talks at": card["url"],
        "Provider": card["provider"],
        "Documentation": card["documentation"],
        "Can": ", ".join(word for word in ("streaming", "push") if card[word]),
        "Authentication": ", ".join(card["auth"]),
        "Takes": ", ".join(card["input_modes"]),
        "Gives": ", ".join(card["output_modes"]),
        "Protocols": ", ".join(card["protocols"]),
    }
    lines += [f"{name}: {text}" if name else text for name, text in told.items() if text]
    for skill in card["skills"]:
        tags = f" [{', '.join(skill['tags'])}]" if skill["tags"] else ""
        lines.append(f"- {skill['id']}: {skill['name']}{tags}. {skill['description']}".rstrip(". "))
    return "\n".join(lines)
