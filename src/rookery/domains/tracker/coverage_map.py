"""What was examined in a project, folder by folder, for people. In no list of tools: see runs/person_runs.py."""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.tables import coverage
from rookery.lifecycle.issue_tables import issues

MOST_CONCEPTS = 24
_c = coverage.c


class ReadCoverageMap(ToolInput):
    folder: str = Field("", max_length=1000, description="Below this folder.")
    offset: int = Field(0, ge=0, le=1_000_000, description="Skip so many.")
    limit: int = Field(100, ge=1, le=500, description="At most.")


class MapLine(ToolOutput):
    """A folder or a file below the wanted one. `cells` has for each concept how many files were examined, and how many
    of them have issues; for a file also the identifier of its issue."""

    name: str
    path: str
    is_folder: bool
    cells: dict[str, dict[str, Any]]


class CoverageMap(ToolOutput):
    folder: str
    concepts: list[str]
    """Those recorded most often first; of many the first 24."""
    lines: list[MapLine]
    total: int
    next_offset: int | None
    examined: int
    with_issues: int


@tool(
    title="Read coverage map", effect="read", action="tracker:read", tier="observe", group="Read", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
def read_coverage_map(ctx: Context, args: ReadCoverageMap) -> CoverageMap:
    """What was examined in the bound project, one line for each folder and file directly below `folder`."""
    folder = f"{args.folder.strip('/')}/" if args.folder.strip("/") else ""
    lines, counts = _lines(ctx, folder)
    concepts = sorted(counts, key=lambda concept: (-counts[concept], concept))[:MOST_CONCEPTS]
    ordered = sorted(lines.values(), key=lambda line: (not line.is_folder, line.name))
    page = ordered[args.offset : args.offset + args.limit]
    end = args.offset + len(page)
    cells = [cell for line in ordered for cell in line.cells.values()]
    return CoverageMap(
        folder=folder,
        concepts=concepts,
        lines=page,
        total=len(ordered),
        next_offset=end if end < len(ordered) else None,
        examined=sum(cell["examined"] for cell in cells),
        with_issues=sum(cell["with_issues"] for cell in cells),
    )


def _lines(ctx: Context, folder: str) -> tuple[dict[str, MapLine], dict[str, int]]:
    """The lines by name, and how often each concept was recorded below the folder."""
    lines: dict[str, MapLine] = {}
    counts: dict[str, int] = {}
    for row in ctx.tx.all(_grouped(ctx, folder)):
        line = lines.setdefault(row.part, _line(folder, row.part))
        cell = line.cells.setdefault(row.concept, {"examined": 0, "with_issues": 0, "issue": None, "at_ms": 0})
        cell["examined"] += row.files
        cell["with_issues"] += row.files if row.status == "has_issues" else 0
        cell["at_ms"] = max(cell["at_ms"], row.at_ms)
        cell["issue"] = cell["issue"] if line.is_folder else row.identifier or cell["issue"]
        counts[row.concept] = counts.get(row.concept, 0) + row.files
    return lines, counts


def _line(folder: str, part: str) -> MapLine:
    return MapLine(name=part, path=folder + part.rstrip("/"), is_folder=part.endswith("/"), cells={})


def _grouped(ctx: Context, folder: str) -> sa.Select[*tuple[Any, ...]]:
    """One row for each folder (with a slash at its end) or file, concept and status."""
    place = sa.func.instr if ctx.tx.dialect == "sqlite" else sa.func.strpos
    rest = sa.func.substr(_c.file_path, len(folder) + 1)
    part = sa.case((place(rest, "/") > 0, sa.func.substr(rest, 1, place(rest, "/"))), else_=rest).label("part")
    seen = sa.and_(
        issues.c.tenant == _c.tenant, issues.c.id == _c.ticket_id, issues.c.project_id.not_in(ctx.actor.closed)
    )
    inner = (
        sa.select(part, _c.concept, _c.status, _c.updated_ms, issues.c.identifier)
        .outerjoin(issues, seen)
        .where(_c.tenant == ctx.actor.tenant, _c.project_id == ctx.actor.project)
    )  # fmt: skip
    if folder:
        inner = inner.where(sa.func.substr(_c.file_path, 1, len(folder)) == folder)
    found = inner.subquery().c
    counted = sa.select(
        found.part,
        found.concept,
        found.status,
        sa.func.count().label("files"),
        sa.func.max(found.updated_ms).label("at_ms"),
        sa.func.max(found.identifier).label("identifier"),
    )
    return counted.group_by(found.part, found.concept, found.status)
