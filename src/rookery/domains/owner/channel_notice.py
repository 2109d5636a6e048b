"""What a channel is given to tell: a notification or an ask, as texts that fit."""

from dataclasses import dataclass, field
from typing import Any, Literal

from rookery.asks.answering import numbered, read_decision
from rookery.domains.owner.channel_frames import Fit, cut, one_line, visible

Level = Literal["info", "warning", "success", "error"]
ROOM = 1200
"""So much of a message is kept for its title and for what is ours, whatever the channel counts."""
MAX_LINK = 400


@dataclass(frozen=True, slots=True)
class Told:
    """A notice as one channel tells it."""

    said: str
    """The words of whoever tells or asks, in their frame."""
    ours: str
    """How it is answered, and whose it is."""
    choices: tuple[tuple[int, str], ...]
    """What can be chosen here, by its number: no yes to what was cut."""
    cut: bool

    @property
    def text(self) -> str:
        return f"{self.said}\n\n{self.ours}" if self.ours else self.said


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
    decides: bool = False
    """Whether a yes gives a right, so that all of it has to be read first."""
    answerable: bool = False
    """Whether answers that come back by the channel count: it is the owner's own, and this is an ask."""
    link: str = field(default="", repr=False)
    """Where the ask can be answered; whoever has it can."""

    @property
    def headline(self) -> str:
        """One line, at most 200 characters."""
        title = one_line(self.title) or f"{self.level}: {one_line(self.text)}"
        return cut(title, 200 if self.title.strip() else 80)

    def told(self, fit: Fit) -> Told:
        """The whole text: with the options of an ask, numbered from 1, and how it is answered.

        What is too long is cut, and then neither the options nor how it is answered are missing. Whether it is depends
        on the words and the channel alone.
        """
        room = fit.limit - ROOM
        words = visible("\n\n".join(part for part in (self.text, self.context) if part)).strip()
        choices = tuple(enumerate(self.options, 1))
        whole = _joined(words, visible("\n".join(numbered(self.options))))
        is_cut = fit.framed(whole) > room
        if is_cut:
            choices = tuple((number, option) for number, option in choices if not (self.decides and _is_yes(option)))
            listed = "\n".join(f"{number}. {one_line(option)}" for number, option in choices)
            offered = cut(listed, room // 2, fit.framed)
            whole = _joined(cut(words, room - fit.framed(offered), fit.framed), offered)
        said = fit.frame(_joined(self.headline, whole) if fit.titled else whole)
        return Told(said, self._ours(is_cut=is_cut), choices, is_cut)

    def _ours(self, *, is_cut: bool) -> str:
        lines: list[str] = []
        if self.about == "ask":
            if is_cut:
                refused = "It is too long to be approved here." if self.decides else "It is too long for here."
                lines.append(f"{refused} All of it: rookery asks {self.id}")
            if not (is_cut and self.decides):
                lines.append(f"Answer with: rookery answer {self.id} {'NUMBER or TEXT' if self.options else 'TEXT'}")
            if self.link and len(self.link) <= MAX_LINK:
                lines.append(f"or here: {self.link}")
        return "\n".join([*lines, *([f"— {one_line(self.sender)}"] if self.sender else [])])

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


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _is_yes(option: str) -> bool:
    return read_decision(option).verdict == "yes"
