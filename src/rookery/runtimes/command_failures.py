"""Why a turn of a client program failed, in a sentence for a person, and in a word for programs."""

import re
import signal
from typing import NamedTuple

LONGEST = 500
_LOST = re.compile(
    r"no conversation found|no rollout found|session not found|invalid session identifier|no session found", re.I
)
_STATUS = re.compile(r"(?:\bAPI Error:?|\bstatus(?:Code)?\"?:?|\bcode\"?:|\bHTTP)\s*\"?([45]\d\d)\b")
_UNREACHABLE = re.compile(
    r"unable to connect|connection error|error sending request|ECONN|ENOTFOUND|EAI_AGAIN|network|fetch failed"
    r"|timed? ?out",
    re.I,
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Failure(NamedTuple):
    """What a person is told, and a word for programs."""

    message: str
    code: str


def of_words(title: str, said: str, status: int | None = None) -> Failure:
    """What the program itself has said of its failure."""
    about = short(said)
    if _LOST.search(said):
        return Failure(f"{title} does not have this session any more. The next message begins a new one.", "lost")
    if status is None and (found := _STATUS.search(said)):
        status = int(found[1])
    if status in (401, 403):
        return Failure(f"The model's service does not accept the key of {title} ({status}): {about}", "model_auth")
    if status in (429, 529):
        return Failure(f"The model's service has too much to do ({status}): {about}", "model_busy")
    if status is not None and status >= 500:
        return Failure(f"The model's service fails ({status}): {about}", "model_error")
    if status is not None:
        return Failure(f"The model's service refused the request ({status}): {about}", "model_request")
    if _UNREACHABLE.search(said):
        return Failure(f"The model's service cannot be reached: {about}", "network")
    return Failure(f"{title} failed: {about}", "failed")


def of_end(title: str, exit_code: int | None, errors: str) -> Failure:
    """What it means that the program has ended like this, though it said of no failure itself."""
    last = short(errors)
    if exit_code is not None and exit_code < 0:
        return Failure(f"{title} was ended by {_signal(-exit_code)} in the middle of the turn.", "killed")
    if exit_code and _LOST.search(errors):
        return of_words(title, errors)
    if exit_code:
        return Failure(f"{title} ended with code {exit_code}{': ' + last if last else '.'}", "crashed")
    return Failure(f"{title} ended before the turn was over{': ' + last if last else '.'}", "crashed")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def short(text: str) -> str:
    """The end of the text on one line, without colours."""
    line = " ".join(_COLOURS.sub("", text).split())
    return line if len(line) <= LONGEST else f"… {line[-LONGEST:]}"
