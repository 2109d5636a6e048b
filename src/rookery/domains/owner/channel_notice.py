"""What a channel is given to tell: a notification or an ask, as texts that fit."""

from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["info", "warning", "success", "error"]
CUT = "… (cut)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing to tell. `delivery` names this delivery: whoever gets it twice can tell by that."""

    delivery: str
    about: Literal["notification", "ask"]
    id: str
    title: str
    text: str
    level: Level = "info"
    sender: str = ""
    options: tuple[str, ...] = ()
    context: str = ""
    answerable: bool = False
    """Whether answers that come back by the channel count: it is the owner's own, and this is an ask."""
    link: str = field(default="", repr=False)
    """Where the ask can be answered; whoever has it can."""

    @property
    def headline(self) -> str:
        """One line, at most 200 characters."""
        title = " ".join(self.title.split()) or f"{self.level}: {' '.join(self.text.split())}"
        return cut(title, 200 if self.title.strip() else 80)

    def body(self, limit: int = 60_000) -> str:
        """The whole text: with the options of an ask, numbered from 1, and how it is answered. At most `limit` long."""
        parts = [self.text]
        if self.context:
            parts.append(self.context)
        if self.options:
            parts.append("\n".join(f"{number}. {option}" for number, option in enumerate(self.options, 1)))
        end = f"— {self.sender}" if self.sender else ""
        if self.about == "ask":
            how = f"Answer with: rookery answer {self.id} {'NUMBER or TEXT' if self.options else 'TEXT'}"
            end = f"{how}\n{f'or here: {self.link}' if self.link else ''}\n{end}".replace("\n\n", "\n")
        # How to answer must survive the cut.
        end = f"\n\n{end.strip()}" if end.strip() else ""
        return cut("\n\n".join(parts), limit - len(end)) + end

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        told: dict[str, Any] = {
            "delivery": self.delivery,
            "kind": self.about,
            "id": self.id,
            "title": self.headline,
            "message": self.text,
            "level": self.level,
            "agent": self.sender,
        }
        if self.about == "ask":
            told |= {"options": list(self.options), "context": self.context}
        return told | ({"link": self.link} if self.link else {})


def cut(text: str, limit: int) -> str:
    """The text, or its beginning with a mark that there was more."""
    return text if len(text) <= limit else text[: max(limit - len(CUT), 0)] + CUT
