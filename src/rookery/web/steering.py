"""What the buttons of schedules, workflows and their runs do: one verb of the tool that manages them, and back."""

from starlette.responses import Response

from rookery.web.visit import Visit


async def steered(
    visit: Visit, tool: str, verb: str, words: str, *, to: str, refresh: str = "", **which: str
) -> Response:
    """Do `verb` to the one that `which` names by its id, then show the page at `to`, which says `words`.

    With `refresh` a page that is open stays, and only its live parts of these topics are fetched again.
    """
    await visit.call(tool, {"action": verb, **which})
    return await visit.done(words, to=visit.url(to), refresh=refresh)
