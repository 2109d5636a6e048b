"""Signing out: this browser, another one, or all of a person."""

import contextlib

from starlette.responses import RedirectResponse, Response

from rookery.core.errors import NotFound
from rookery.identity.browser_commands import end_browser
from rookery.web.routing import action
from rookery.web.visit import Visit


@action("/sign-out")
async def sign_out(visit: Visit) -> Response:
    """End this browser's session."""
    # Whoever was signed out elsewhere meanwhile is signed out.
    with contextlib.suppress(NotFound):
        await visit.call(end_browser, {"id": visit.signed_in.id})
    return visit.sign_out(RedirectResponse("/sign-in", 303))


@action("/browsers/end")
async def end_browsers(visit: Visit) -> Response:
    """Sign one browser out, or all of a person, or all of one's own but this one."""
    given: dict[str, str | bool] = {}
    for name in ("id", "person"):
        if visit.word(name):
            given[name] = visit.word(name)
    if visit.word("others"):
        given["others"] = True
    ended = (await visit.call(end_browser, given))["ended"]
    words = "1 browser is signed out." if ended == 1 else f"{ended} browsers are signed out."
    return await visit.done(words, to=visit.url("/people"))
