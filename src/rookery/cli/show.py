"""Tables and JSON on stdout: drawn for a terminal, plain aligned text for everything else."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import click

Rows = Sequence[Sequence[Any]]


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def cell(value: Any) -> str:
    """One value in one line. What a terminal would take for a command is shown as `?`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(cell(item) for item in cast("list[Any]", value)) or "none"
    return "".join(letter if letter.isprintable() else "?" for letter in str(value))


def table(headers: Sequence[str], rows: Rows, *, empty: str) -> None:
    """Print rows under headers, or the sentence `empty` if there are none."""
    groups({"": rows} if rows else {}, headers, empty=empty)


def groups(found: Mapping[str, Rows], headers: Sequence[str], *, empty: str) -> None:
    """Print rows under a heading for each group."""
    if not found:
        click.echo(empty)
    elif sys.stdout.isatty():
        _draw(found, headers)
    else:
        click.echo("\n".join(plain_lines(found, headers)))


def plain_lines(found: Mapping[str, Rows], headers: Sequence[str]) -> list[str]:
    """The table as text with aligned columns."""
    cells = {title: [[cell(value) for value in row] for row in rows] for title, rows in found.items()}
    widths = [len(header) for header in headers]
    for rows in cells.values():
        for row in rows:
            widths = [max(width, len(text)) for width, text in zip(widths, row, strict=True)]
    indent = "  " if any(cells) else ""
    lines = [_aligned(indent, headers, widths)]
    for title, rows in cells.items():
        lines += [title] if title else []
        lines += [_aligned(indent, row, widths) for row in rows]
    return lines


def _aligned(indent: str, row: Sequence[str], widths: Sequence[int]) -> str:
    return (indent + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))).rstrip()


def _draw(found: Mapping[str, Rows], headers: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        drawn.add_column(header)
    for title, rows in found.items():
        if title:
            drawn.add_section()
            drawn.add_row(Text(title, style="bold"))
        for row in rows:
            drawn.add_row(*(Text(cell(value)) for value in row))
    Console().print(drawn)


def fields(value: Mapping[str, Any], *, as_json: bool) -> None:
    """Print one thing: a field a line, and what has several below each other."""
    if as_json:
        print_json(value)
        return
    width = max(len(name) for name in value)
    for name, item in value.items():
        lines = item.splitlines() if isinstance(item, str) else []
        names = [name.replace("_", " "), *[""] * len(lines)]
        for label, line in zip(names, lines or [item], strict=False):
            click.echo(f"{label.ljust(width)}  {cell(line)}")


def listing(found: Sequence[Mapping[str, Any]], shown: Sequence[str], *, as_json: bool, empty: str = "") -> None:
    """Print things of one kind: these fields of each as a table, or everything as JSON."""
    if as_json:
        print_json(found)
        return
    headers = [name.replace("_", " ") for name in shown]
    table(headers, [[each[name] for name in shown] for each in found], empty=empty)
