"""What a person's words mean as an answer, and how a question is put to a person."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

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


def numbered(options: Sequence[str]) -> list[str]:
    """The options as a person sees them; the first has the number 1."""
    return [f"{number}. {option}" for number, option in enumerate(options, 1)]


def put_to_person(question: str, options: Sequence[str], context: str) -> str:
    """The whole question in one text."""
    parts = [question, context, "\n".join(numbered(options))]
    return "\n\n".join(part for part in parts if part)
