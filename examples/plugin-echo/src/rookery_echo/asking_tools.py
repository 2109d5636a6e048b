"""Tools that ask back: the person at the client, or the client's model. They are external, so async.

With a client of 2026-07-28 such a handler ends at its question and runs again from the start with the answer, so it
does nothing before it that must not happen twice.
"""

from typing import Any, Literal

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import InvalidParams
from rookery.core.tool import ToolInput, ToolOutput, tool

MAX_WORD = 100
Focus = Literal["security", "performance", "style", "general"]


class MadlibsElicitation(ToolInput):
    noun: str | None = Field(None, min_length=1, max_length=MAX_WORD, description="A thing; asked for if absent.")
    verb: str | None = Field(None, min_length=1, max_length=MAX_WORD, description="Past tense; asked for if absent.")
    adjective: str | None = Field(None, min_length=1, max_length=MAX_WORD, description="Asked for if absent.")


class Story(ToolOutput):
    story: str
    noun: str
    verb: str
    adjective: str

    def as_text(self) -> str:
        return self.story


@tool(
    title="Mad Libs", effect="external", action="echo:ask", tier="observe", group="Read", profiles="", default=False,
    interactive=True,
)  # fmt: skip
async def madlibs_elicitation(ctx: Context, args: MadlibsElicitation) -> Story:
    """Tell a story with words of the person at the client. Use it to see how a client asks its person.
    Returns the story. Needs a client that can ask, unless all words are given."""
    words = args.model_dump(exclude_none=True)
    missing = [name for name in MadlibsElicitation.model_fields if name not in words]
    if missing:
        words |= await _asked_for(ctx, missing)
    story = f"The {words['adjective']} {words['noun']} {words['verb']} over the lazy dog."
    return Story(story=story, **words)


async def _asked_for(ctx: Context, missing: list[str]) -> dict[str, str]:
    """The missing words, as the person gave them. What a client sends is checked like any argument."""
    field = {"type": "string", "minLength": 1, "maxLength": MAX_WORD}
    form: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(missing, field), "required": missing}
    given = await ctx.elicit("Some words for a story, please.", form)
    if given is None:
        raise InvalidParams("the person gave no words", hint="call again with noun, verb and adjective")
    wrong = [name for name in missing if not isinstance(given.get(name), str) or not 0 < len(given[name]) <= MAX_WORD]
    if wrong:
        raise InvalidParams(f"no usable answer for {', '.join(wrong)}", hint=f"1 to {MAX_WORD} characters each")
    return {name: given[name] for name in missing}


class CodeReviewSampling(ToolInput):
    code: str = Field(min_length=1, max_length=10_000, description="What to review.")
    language: str | None = Field(None, max_length=50, description="Its language, if that is not plain.")
    focus: Focus = Field("general", description="What to look for.")
    max_tokens: int = Field(500, ge=100, le=2000, description="How long the review may become.")


class Review(ToolOutput):
    focus: Focus
    language: str | None
    review: str

    def as_text(self) -> str:
        return f"## Review ({self.focus})\n\n{self.review}"


@tool(
    title="Code review", effect="external", action="echo:ask", tier="act", group="Review", profiles="", default=False,
)  # fmt: skip
async def code_review_sampling(ctx: Context, args: CodeReviewSampling) -> Review:
    """Let the client's own model review code. Use it to see how a client lends its model.
    Returns the review. Needs a client that offers sampling, and spends that client's tokens."""
    ctx.emit_status("waiting for the client's model")
    review = await ctx.sample(
        f"Review this {args.language or 'code'} for {args.focus} issues:\n\n{args.code}",
        max_tokens=args.max_tokens,
        system="You review code. Be short and concrete.",
    )
    return Review(focus=args.focus, language=args.language, review=review)
