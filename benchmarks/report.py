"""Turns measurements into a table for people and a file for programs."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine

HEADER = ("measured", "value", "ratio", "target", "")


@dataclass(frozen=True)
class Row:
    """One line of the table. `ok` is None where no target is stated."""

    name: str
    value: str
    ratio: float | None = None
    against: str = ""
    target: str = ""
    ok: bool | None = None

    def cells(self) -> tuple[str, ...]:
        ratio = f"{self.ratio:.2f} x {self.against}" if self.ratio is not None else ""
        return self.name, self.value, ratio, self.target, {None: "", True: "pass", False: "FAIL"}[self.ok]


@dataclass
class Group:
    """What one group measured, left out (`skipped`) and failed to measure (`problems`)."""

    name: str
    rows: list[Row] = field(default_factory=list[Row])
    samples: dict[str, Any] = field(default_factory=dict[str, Any])
    skipped: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    def at_least(self, name: str, value: str, ratio: float, against: str, target: float) -> None:
        """A row that passes when the ratio reaches the target."""
        self.rows.append(Row(name, value, ratio, against, f">= {target:g}", ratio >= target))

    def at_most(self, name: str, value: str, ratio: float, against: str, target: float) -> None:
        """A row that passes when the ratio does not exceed the target."""
        self.rows.append(Row(name, value, ratio, against, f"<= {target:g}", ratio <= target))

    def limit(self, name: str, amount: float, unit: str, target: float) -> None:
        """A row that passes when the amount itself does not exceed the target."""
        self.rows.append(Row(name, f"{amount:.1f} {unit}", target=f"<= {target:g} {unit}", ok=amount <= target))


def table(rows: Iterable[Row]) -> str:
    """The rows under a header, in columns."""
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def show(group: Group) -> None:
    """Print one group."""
    print(f"\n{group.name}\n{table(group.rows)}")
    for reason in group.skipped:
        print(f"left out  {reason}")
    for problem in group.problems:
        print(f"NOT MEASURED  {problem}")


def write(group: Group, folder: Path) -> Path:
    """Write one group as JSON, with the samples behind the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{group.name}.json"
    path.write_text(json.dumps(asdict(group) | {"machine": machine.describe()}, indent=1) + "\n")
    return path
