"""The options with which it is set how a project is worked on, and what they say."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from rookery.cli.options import given

F = TypeVar("F", bound=Callable[..., Any])
HOOKS = {
    "after_create": "Runs once in a new workspace; '' for nothing.",
    "before_run": "Runs before every run, which ends if it fails.",
    "after_run": "Runs after every run.",
    "before_remove": "Runs before a workspace is removed.",
}
LIMITS = {
    "max_turns": "max_turns",
    "run_budget": "run_budget_usd",
    "issue_budget": "issue_budget_usd",
    "daily_budget": "daily_budget_usd",
}
"""Options that may be none, and what they set."""
PLAIN = (
    *("max_agents", "max_retries", "run_limit_s", "gate_limit_s", "merge", "auto_merge", "scan_batch"),
    *("scan_every_s", "intake_batch", "intake_folder"),
)
"""Options that are called like what they set."""


def setting_options(function: F) -> F:
    """An option for each setting."""
    number: dict[str, Any] = {"metavar": "N", "type": int}
    pair: dict[str, Any] = {"metavar": "ROLE=…", "multiple": True}
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("--max-agents", {**number, "help": "How many agents work in the project at once."}),
        ("--role-cap", {**pair, "help": "How many of a role, such as worker=2; worker=none for no cap."}),
        ("--agent", {**pair, "help": "Which agent does the work of a role, such as judge=ada; judge=none."}),
        ("--model", {**pair, "help": "Which model a role uses, such as worker=opus; worker=none."}),
        *((_option(hook), {"metavar": "COMMAND", "help": words}) for hook, words in HOOKS.items()),
        ("--hook-limit-s", {**number, "help": "How many seconds each of these commands may take."}),
        ("--prompt", {"metavar": "PART=N", "multiple": True, "help": "Tokens of context, such as memories=2000."}),
        ("--max-retries", {**number, "help": "How often what failed is tried again."}),
        ("--run-limit-s", {**number, "help": "How many seconds a run may take."}),
        ("--max-turns", {"metavar": "N", "help": "How many turns a run may have; none for no limit."}),
        ("--gate-limit-s", {**number, "help": "How many seconds each gate may take."}),
        ("--run-budget", {"metavar": "USD", "help": "What a run may cost; none for no limit."}),
        ("--issue-budget", {"metavar": "USD", "help": "What an issue may cost; none for no limit."}),
        ("--daily-budget", {"metavar": "USD", "help": "What a day (UTC) may cost; none for no limit."}),
        ("--merge", {"type": click.Choice(("ff", "merge")), "help": "Fast-forward, or a merge commit."}),
        ("--auto-merge/--no-auto-merge", {"default": None, "help": "Merge changes of low risk without a person."}),
        ("--scan", {"metavar": "CONCEPT", "multiple": True, "help": "Examine files for it; give it for each."}),
        ("--no-scan", {"is_flag": True, "help": "Examine files for nothing."}),
        ("--scan-path", {"metavar": "GLOB", "multiple": True, "help": "Which files; give it for each."}),
        ("--scan-batch", {**number, "help": "How many files an agent is given at once."}),
        ("--scan-every-s", {**number, "help": "How many seconds are between two scans."}),
        ("--intake-batch", {**number, "help": "How many requests an agent is given at once."}),
        ("--intake-folder", {"metavar": "FOLDER", "help": "Whose files become requests; '' for none."}),
    ]
    for name, how in reversed(kinds):
        function = click.option(name, **how)(function)
    return function


def given_settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """What the options say, as the tool takes it; what was not given is left out."""
    if said["scan"] and said["no_scan"]:
        raise click.UsageError("give --scan or --no-scan, not both")
    arguments = given(**{name: said[name] for name in PLAIN})
    limits = given(**{name: said[name] for name in LIMITS})
    hooks = given(**{hook: said[hook] for hook in HOOKS}, limit_s=said["hook_limit_s"])
    arguments |= given(
        role_caps=_pairs("--role-cap", said["role_cap"], numbers=True),
        agents=_pairs("--agent", said["agent"]),
        models=_pairs("--model", said["model"]),
        hooks=hooks or None,
        prompt=_pairs("--prompt", said["prompt"], numbers=True),
        scan_concepts=[] if said["no_scan"] else list(said["scan"]) or None,
        scan_paths=list(said["scan_path"]) or None,
    )
    arguments |= given(
        **{LIMITS[name]: _number(text, _option(name)) for name, text in limits.items() if text != "none"}
    )
    arguments |= given(unlimited=[LIMITS[name] for name, text in limits.items() if text == "none"] or None)
    return arguments


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _number(text: str, option: str) -> float:
    """The number that was written."""
    try:
        found = float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no number; write one, or none", param_hint=option) from None
    return int(found) if found.is_integer() else found


def _pairs(option: str, said: tuple[str, ...], *, numbers: bool = False) -> dict[str, Any] | None:
    """What was said for each name; `none` takes it out."""
    found: dict[str, Any] = {}
    for text in said:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise click.BadParameter(f"{text!r} is no pair; write name=value, or name=none", param_hint=option)
        if name in found:
            raise click.BadParameter(f"{name} is given twice", param_hint=option)
        found[name] = None if value == "none" else _number(value, option) if numbers else value
    return found or None
