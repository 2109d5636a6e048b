"""A domain of one write tool: one row in, its number out. Loaded only by the benchmarks."""

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.migrate import Migration
from rookery.db.schema import metadata, serial, text

bench_notes = sa.Table("bench_notes", metadata, serial(), text("tenant"), text("body"))
CREATE = "CREATE TABLE bench_notes (id {serial}, tenant TEXT NOT NULL, body TEXT NOT NULL)"
MIGRATIONS = (Migration(1, "notes", [CREATE]),)


class SaveNote(ToolInput):
    text: str = Field(max_length=500, description="What to write down.")


class Note(ToolOutput):
    id: int
    status: str


@tool(
    title="Save note", effect="write", action="bench_notes:write", tier="act", group="Write", profiles="W",
    default=True,
)  # fmt: skip
def save_note(ctx: Context, args: SaveNote) -> Note:
    """Write a note down. Use it to measure what a write costs.
    Returns the number of the note. At most 500 characters."""
    row = sa.insert(bench_notes).values(tenant=ctx.actor.tenant, body=args.text).returning(bench_notes.c.id)
    return Note(id=ctx.tx.scalar(row), status="noted")
