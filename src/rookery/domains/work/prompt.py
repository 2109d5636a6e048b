"""What an agent is told when it starts to work on a task, and when it has to go on. Pure."""

import re
from dataclasses import dataclass

TITLE_CHARACTERS = 60
_PR = re.compile(r"https://[\w.-]+/[\w.-]+/[\w.-]+/pull/\d+\b")


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a prompt is made of."""

    description: str
    branch: str
    folder: str
    checks: tuple[str, ...] = ()
    iteration: int = 1
    iterations: int = 1
    problems: str | None = None
    exported: str = ""
    """A map of what the project's code exports."""
    named: str = ""
    """The symbols whose names the description has."""


def prompt_for(briefing: Briefing) -> str:
    """The prompt of one session. Only lines of the description start at the margin as their author wrote them."""
    parts = [
        "You work on a task by yourself; nobody can be asked.",
        f"Your working tree is {briefing.folder}, on the branch {briefing.branch}. Work only there and stay on that "
        "branch. Commit what you do; what you leave uncommitted is committed for you.",
        "The task:",
        briefing.description,
    ]
    if briefing.checks:
        parts += ["When you are done, these commands must succeed:", _indented("\n".join(briefing.checks))]
    if briefing.named:
        parts += ["In the project's code these have words of the task in their names:", _indented(briefing.named)]
    if briefing.exported:
        parts += ["What the project's code exports, file by file, with lines:", _indented(briefing.exported)]
    if briefing.problems:
        turn = f"This is attempt {briefing.iteration} of {briefing.iterations}."
        parts += [f"{turn} What you did before is in the working tree. This is what was wrong with it:"]
        parts += [_indented(briefing.problems), "Put it right."]
    return "\n\n".join(parts)


def pr_address(output: str) -> str | None:
    """The last address of a pull request in what an agent said."""
    found = _PR.findall(output)
    return found[-1] if found else None


def title(description: str) -> str:
    """The first line of a description, short enough for a commit or a pull request."""
    first = description.strip().splitlines()[0].strip() if description.strip() else ""
    return f"[Agent] {first if len(first) <= TITLE_CHARACTERS else first[: TITLE_CHARACTERS - 1] + '…'}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
