"""Why a turn of Claude Code failed, in a sentence for a person. Knows the SDK's results by their fields alone."""

import re
import signal
from typing import Any, NamedTuple

LONGEST = 500
_STATUS = re.compile(r"API Error: (\d{3})\b")
_UNREACHABLE = re.compile(
    r"unable to connect|connection error|ECONN|ENOTFOUND|socket|network|fetch failed|timed? ?out", re.I
)


class Failure(NamedTuple):
    """What a person is told, and a word for programs."""

    message: str
    code: str


def of_result(result: Any, max_turns: int | None) -> Failure | None:
    """What is wrong with how a turn ended; None if nothing is."""
    if not result.is_error:
        return None
    said = "; ".join(result.errors or ()) or result.result or result.subtype
    if result.subtype == "error_max_turns":
        most = f" ({max_turns})" if max_turns else ""
        return Failure(f"The agent was not done within its limit of turns{most}.", "max_turns")
    if result.subtype == "error_max_budget_usd":
        return Failure("The agent has spent what it may spend in this session.", "budget")
    return of_service(_status(result, said), said)


def _status(result: Any, said: str) -> int | None:
    if isinstance(result.api_error_status, int):
        return result.api_error_status
    found = _STATUS.search(said)
    return int(found[1]) if found else None


def of_service(status: int | None, said: str) -> Failure:
    """What the model's service answered, or that it did not."""
    about = short(said)
    if status in (401, 403):
        return Failure(
            f"The model's service does not accept our key ({status}): check ANTHROPIC_API_KEY.", "model_auth"
        )
    if status == 404:
        return Failure(f"The model's service does not know what it was asked for (404): {about}", "model_unknown")
    if status == 413:
        return Failure("The conversation is too long for the model's service (413).", "model_request")
    if status in (429, 529):
        return Failure(f"The model's service has too much to do ({status}): try again later.", "model_busy")
    if status is not None and status >= 500:
        return Failure(f"The model's service fails ({status}): try again later.", "model_error")
    if status is not None:
        return Failure(f"The model's service refused the request ({status}): {about}", "model_request")
    if _UNREACHABLE.search(said):
        return Failure(f"The model's service cannot be reached: {about}", "network")
    return Failure(f"The turn failed: {about}", "failed")


def of_end(exit_code: int | None, complaint: str) -> Failure:
    """What it means that the program is no more, though its turn was not over."""
    last = short(complaint.rpartition("\n")[2])
    if exit_code is not None and exit_code < 0:
        return Failure(f"Claude Code was ended by {_signal(-exit_code)} in the middle of the turn.", "killed")
    how = f" with code {exit_code}" if exit_code else ""
    return Failure(f"Claude Code ended{how} in the middle of the turn{': ' + last if last else '.'}", "crashed")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def short(text: str) -> str:
    """The text on one line, and not too much of it."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"
