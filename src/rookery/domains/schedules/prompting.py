"""What a session is asked to do for an action."""

from rookery.domains.schedules.action import Action

UNATTENDED = "You were started by a schedule and nobody is there to ask. Finish with a short report of what you did."


def prompt_for(action: Action) -> str:
    """The whole prompt of an action that is left to a session."""
    asked = _asked(action)
    about = f"\n\n{action.description}" if action.description and action.type != "custom" else ""
    return f"{asked}{about}\n\n{UNATTENDED}"


def _asked(action: Action) -> str:
    repos = ", ".join(action.repos)
    where = f" of {repos}" if repos else ""
    if action.type == "review_prs":
        return f"Review up to {action.max_prs} open pull requests{where}: read each diff and leave a review."
    if action.type == "github_suggest":
        ending = "Create a work task for each." if action.auto_create_pr else "Only describe them, change nothing."
        return f"Look through {repos} and suggest improvements that are worth their effort. {ending}"
    if action.type == "codebase_review":
        return f"Review the codebase{where}: find bugs, risks and needless complexity. Change nothing."
    if action.type == "dependency_audit":
        return (
            f"Audit the dependencies{where}: find outdated, vulnerable and unused ones and say what to do about each. "
            "Change nothing."
        )
    return action.prompt or ""
