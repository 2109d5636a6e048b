"""What a person's words mean as an answer, and how a question is put to a person."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rookery.core.errors import ValidationFailed

DECISIONS = ("Approve", "Deny", "Later", "Approve for 1 hour")
"""What can be said to somebody who waits for a yes. Only `Later` leaves the ask open, only approvals last a while."""
MOST_S = 30 * 86_400
_UNITS = {"minute": 60, "min": 60, "m": 60, "hour": 3600, "h": 3600, "day": 86_400, "d": 86_400}
_YES, _NO, _LATER = ("approve", "yes"), ("deny", "no"), ("later", "not now")
_FOR = re.compile(r"(?:approve|yes),? for (\d{1,4}) ?(minute|min|m|hour|h|day|d)s?")
_NO_BECAUSE = re.compile(r"(?:deny|no)\s*[:,]\s*(.+)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said. `option` is the number of the chosen option, counted from 1, and `text` then its own text."""

    text: str
    option: int | None = None


def read_answer(text: str, options: Sequence[str]) -> Answer:
    """A number is the option of that number, the first being 1; an option's own text, in whatever case, is that option;
    everything else stands for itself."""
    said = text.strip()
    if _NUMBER.fullmatch(said) and 1 <= int(said) <= len(options):
        return Answer(options[int(said) - 1], int(said))
    for number, option in enumerate(options, 1):
        if option.casefold() == said.casefold():
            return Answer(option, number)
    return Answer(said)


def misleading(options: Sequence[str]) -> str | None:
    """An option that is the number of another one, so that nobody could choose it by its own text; None if none is."""
    for number, option in enumerate(options, 1):
        if _NUMBER.fullmatch(option) and 1 <= int(option) <= len(options) and int(option) != number:
            return option
    return None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided. `for_s`: yes to everything of that kind for so long; `reason` is for the asker."""

    verdict: Literal["yes", "no", "later"]
    reason: str = ""
    for_s: int | None = None


def read_decision(text: str) -> Decision:
    """A decision in a person's words or as a number of DECISIONS. Whatever is not clearly one of these is refused."""
    said = " ".join(text.split())
    if _NUMBER.fullmatch(said) and 1 <= int(said) <= len(DECISIONS):
        said = DECISIONS[int(said) - 1]
    word = said.casefold()
    if word in _YES:
        return Decision("yes")
    if word in _NO:
        return Decision("no")
    if word in _LATER:
        return Decision("later")
    spell = _FOR.fullmatch(word)
    if spell is not None and 0 < int(spell[1]) * _UNITS[spell[2]] <= MOST_S:
        return Decision("yes", for_s=int(spell[1]) * _UNITS[spell[2]])
    refusal = _NO_BECAUSE.fullmatch(text.strip())
    if refusal is not None:
        return Decision("no", reason=refusal[1].strip())
    raise ValidationFailed(
        f"{said[:40]!r} is no decision", hint="say approve, approve for 2 hours, deny, deny: why, or later"
    )


def said_in_form(options: Sequence[str], choice: str, text: str, *, decides: bool) -> str:
    """What was said with a button, whose `choice` is its number, and a field beside it. Of both nothing is left out: a
    refusal has its reason, an option what was added. ValidationFailed for a yes with conditions."""
    if not (choice and text):
        return choice or text
    if not decides:
        return f"{read_answer(choice, options).text}: {text}"
    if read_decision(choice).verdict != "no":
        raise ValidationFailed(
            "a decision has no words beside it", hint="approve without a condition, or deny with a reason"
        )
    return f"deny: {text}"


def numbered(options: Sequence[str]) -> list[str]:
    """The options as a person sees them; the first has the number 1."""
    return [f"{number}. {option}" for number, option in enumerate(options, 1)]


def put_to_person(question: str, options: Sequence[str], context: str) -> str:
    """The whole question in one text."""
    parts = [question, context, "\n".join(numbered(options))]
    return "\n\n".join(part for part in parts if part)
