"""What a task's branch and folder are called. Pure."""

import os
import re

SLUG_CHARACTERS = 40
WORKTREES = ".rookery-worktrees"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def slug(text: str, limit: int = SLUG_CHARACTERS) -> str:
    """Letters and digits with single dashes between them, at most `limit`; empty if the text has none."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].rstrip("-")


def base36(number: int) -> str:
    """A whole number that is not negative, in digits and letters."""
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
        if not number:
            return digits


def branch_name(agent: str, description: str, at_ms: int, token: str) -> str:
    """Such as `agent/ada/fix-the-login-lx2m1k0q-3f9c1a`: a name that git takes, and no option of any command."""
    return f"agent/{slug(agent) or 'agent'}/{slug(description) or 'task'}-{base36(at_ms)}-{token}"


def worktree_folder(base_dir: str, project_path: str, task_id: str) -> str:
    """Where the task's working tree is: below `base_dir`, or beside the project's folder if that is empty."""
    beside = os.path.join(os.path.dirname(os.path.realpath(project_path)), WORKTREES)
    return os.path.join(os.path.abspath(os.path.expanduser(base_dir)) if base_dir else beside, task_id)
