"""The prompt `code_review`. It is had with the right of the tool echo_message."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.prompt import prompt
from rookery.core.tool import ToolInput
from rookery_echo.asking_tools import Focus

LANGUAGES = ("c", "go", "java", "javascript", "kotlin", "php", "python", "ruby", "rust", "swift", "typescript")


class CodeReview(ToolInput):
    language: str | None = Field(None, max_length=50, description="Language of the code.")
    focus: Focus = Field("general", description="What to look for.")
    include_examples: bool = Field(False, description="Whether to ask for examples of better code.")


def languages(ctx: Context, typed: str, others: dict[str, str]) -> list[str]:
    """What may follow what was typed so far. `focus` and `include_examples` complete by themselves."""
    return [language for language in LANGUAGES if language.startswith(typed.lower())]


@prompt(title="Code review", right="echo_message", complete={"language": languages}, inline=True)
def code_review(ctx: Context, args: CodeReview) -> str:
    """Asks for a review of code, with the points to look for."""
    aims = {
        "security": "Look for ways to misuse it: input that is trusted, secrets, missing checks.",
        "performance": "Look for work that is done twice, too early or for nothing.",
        "style": "Look for names, structure and comments that mislead.",
        "general": "Look for faults, then for what is hard to read.",
    }
    lines = [f"Review the following {args.language or 'code'}. {aims[args.focus]}", "Name file and line of each point."]
    if args.include_examples:
        lines.append("Show better code for each point.")
    return "\n".join(lines)
