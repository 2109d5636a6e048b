"""Conversations in a terminal: of a session, or of a transcript, whose messages have the same parts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import click

from rookery.cli.session_lines import plain
from rookery.cli.show import cell

LONGEST = 2000
WHO = {"user": ">", "agent": "<", "assistant": "<"}


def tell_messages(messages: Iterable[Mapping[str, Any]]) -> None:
    """Print messages one below the other, each with what was done in it."""
    for message in messages:
        click.echo("")
        mark = WHO.get(str(message["role"]), "-")
        kind = f" ({message['kind']})" if message.get("kind") not in (None, "text") else ""
        for number, part in enumerate(message["parts"]):
            lines = part_lines(part)
            first = f"{mark}{kind} " if number == 0 else "  "
            for line_number, line in enumerate(lines):
                click.echo(f"{first if line_number == 0 else '  '}{line}")
        if "done" in message and message["done"].get("reason") != "completed":
            click.echo(f"  ({cell(message['done'].get('reason'))}: {cell(message['done'].get('error'))})")


def part_lines(part: Mapping[str, Any]) -> list[str]:
    """A part of a message, line by line."""
    kind = part["type"]
    if kind in ("text", "output", "error"):
        return _short(str(part["text"]))
    if kind == "thinking":
        return [f"({line})" for line in _short(str(part["text"]))]
    if kind == "tool":
        given = json.dumps(part["input"], ensure_ascii=False) if part.get("input") else ""
        called = f"* {cell(part.get('tool'))} {cell(given)}"[:LONGEST].rstrip()
        came = [] if part.get("result") is None else _short(str(part["result"]))
        return [called, *(f"  {line}" for line in came)]
    if kind in ("approval", "question"):
        return [f"? {cell(part.get('title') or part.get('tool') or kind)}: {cell(part.get('how') or 'open')}"]
    return [f"[{cell(kind)}]"]


def _short(text: str) -> list[str]:
    shown = plain(text)
    return (shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…").split("\n")
