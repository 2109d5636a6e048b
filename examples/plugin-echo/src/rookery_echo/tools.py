"""Tools that need nothing but their arguments. They touch neither database nor files, so they run on the event loop."""

from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from rookery.core.blocks import Block, Image, Text
from rookery.core.context import Context
from rookery.core.errors import ValidationFailed
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery_echo.picture import draw_png
from rookery_echo.sales import Sale, make_sales, to_markdown

TRIGGER_ERROR = "TRIGGER_ERROR"


class EchoMessage(ToolInput):
    message: str = Field(min_length=1, max_length=1000, description="What to say back.")
    mode: Literal["standard", "uppercase", "lowercase"] = Field("standard", description="How to write it.")
    repeat: int = Field(1, ge=1, le=5, description="How often.")
    include_timestamp: bool = Field(False, description="Also say when.")


class Echoed(ToolOutput):
    original_message: str
    formatted_message: str
    repeated_message: str
    mode: str
    repeat_count: int
    timestamp: str | None = None

    def as_text(self) -> str:
        """What people and models read; without it they would be shown the JSON of the fields."""
        return f"{self.repeated_message} ({self.timestamp})" if self.timestamp else self.repeated_message


@tool(
    title="Echo message", effect="read", action="echo:read", tier="observe", group="Read", profiles=EVERY_PROFILE,
    default=True, inline=True,
)  # fmt: skip
def echo_message(ctx: Context, args: EchoMessage) -> Echoed:
    """Say a message back. Use it to see how text travels through a client.
    Returns the message in the wanted form. At most 1,000 characters; TRIGGER_ERROR fails on purpose."""
    if args.message == TRIGGER_ERROR:
        raise ValidationFailed("the message asked for an error", hint="send any other message")
    formed = {"standard": str, "uppercase": str.upper, "lowercase": str.lower}[args.mode](args.message)
    return Echoed(
        original_message=args.message,
        formatted_message=formed,
        repeated_message=" ".join([formed] * args.repeat),
        mode=args.mode,
        repeat_count=args.repeat,
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds") if args.include_timestamp else None,
    )


class ImageTest(ToolInput):
    size: int = Field(64, ge=8, le=256, description="Width and height in pixels.")


class Picture(ToolOutput):
    mime_type: str = "image/png"
    width: int
    height: int

    def as_blocks(self) -> list[Block]:
        """What the model is shown: the picture itself and a caption. The fields above go along as the structure."""
        caption = Text(f"A square of {self.width} by {self.height} pixels.")
        return [Image(draw_png(self.width, self.height), self.mime_type), caption]


@tool(
    title="Image test", effect="read", action="echo:read", tier="observe", group="Read", profiles="", default=True,
    inline=True,
)  # fmt: skip
def image_test(ctx: Context, args: ImageTest) -> Picture:
    """Show a picture. Use it to see whether a client shows images.
    Returns a PNG made here, with its size. At most 256 pixels wide; nothing is loaded from anywhere."""
    return Picture(width=args.size, height=args.size)


class DataExplorer(ToolInput):
    row_count: int = Field(20, ge=5, le=100, description="How many sales to invent.")


class Sales(ToolOutput):
    rows: list[Sale]
    total_revenue: float

    def as_text(self) -> str:
        """A table in Markdown."""
        return f"## Sales\n\n{to_markdown(self.rows)}\n\nTotal revenue: **{self.total_revenue:,.2f}**"


@tool(
    title="Data explorer", effect="read", action="echo:read", tier="observe", group="Read", profiles="", default=True,
    inline=True,
)  # fmt: skip
def data_explorer(ctx: Context, args: DataExplorer) -> Sales:
    """Invent sales figures. Use it to see how a client shows a table in Markdown.
    Returns the rows and their sum. The figures are the same every time and mean nothing."""
    rows = make_sales(args.row_count)
    return Sales(rows=rows, total_revenue=round(sum(row.revenue for row in rows), 2))
