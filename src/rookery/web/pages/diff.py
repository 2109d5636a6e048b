"""The diff of a pull request: read it, comment on its lines, and decide."""

import asyncio
from typing import Any, get_args
from urllib.parse import quote

from starlette.responses import Response

from rookery.core.errors import NotFound, ValidationFailed
from rookery.domains.tracker.branch_merge import Method
from rookery.domains.tracker.line_commenting import add_line_comment, remove_line_comment
from rookery.domains.tracker.pr_reading import read_pr, read_pr_diff
from rookery.engine.gate_reading import read_gate_run
from rookery.engine.publishing import publish_pr
from rookery.web.diff_files_shown import Asked, path_of, shown_file, shown_page
from rookery.web.diff_view import View
from rookery.web.publishing_view import publishing_of
from rookery.web.routing import action, page
from rookery.web.visit import Visit

METHODS: tuple[Method, ...] = get_args(Method)
Values = dict[str, Any]


@page("/issues/{identifier}/diff")
async def diff(visit: Visit) -> Response:
    """A revision of the pull request, the newest if none is named."""
    issue, view = visit.path["identifier"], _view(visit)
    standing = await _standing(visit, issue, _number(visit.query.get("revision")))
    standing["publishing"] = await publishing_of(visit, standing)
    if visit.wants_part == "standing":
        return await visit.render("diff.html", view=view, **standing)
    asked = await _asked(visit, standing, view)
    wanted = visit.query.get("q", "")[:500]
    shown = await shown_page(asked, wanted, _number(visit.query.get("page")) or 1)
    gate_run = (await visit.call(read_gate_run, {"issue_id": issue}))["run"] if not standing["gates"] else None
    return await visit.render("diff.html", view=view, wanted=wanted, shown=shown, gate_run=gate_run, **standing)


@page("/issues/{identifier}/diff/files/{number}")
async def diff_file(visit: Visit) -> Response:
    """One file of it, open."""
    issue, view = visit.path["identifier"], _view(visit)
    standing = await _standing(visit, issue, _number(visit.query.get("revision")))
    number = _number(visit.path["number"])
    found = None if number is None else await shown_file(await _asked(visit, standing, view), number)
    if found is None:
        raise NotFound("the change has no such file", hint="its page lists those it has")
    return await visit.render("diff_one_file.html", view=view, each=found, **standing)


@page("/issues/{identifier}/diff/text")
async def diff_text(visit: Visit) -> Response:
    """The whole diff, to be kept as a file."""
    issue, revision = visit.path["identifier"], _number(visit.query.get("revision"))
    found = await visit.call(read_pr_diff, {"issue_id": issue, "revision": revision})
    name = quote(f"{issue}-revision-{found['revision']}.diff")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    text = await asyncio.to_thread(found["diff"].encode, "utf-8", "replace")
    return Response(text, media_type="text/plain", headers=headers)


@action("/issues/{identifier}/diff/comments")
async def comment_on_line(visit: Visit) -> Response:
    """Say something about a line; the worker is told when the revision is rejected."""
    issue, revision = visit.path["identifier"], _revision(visit)
    line, file, side = _number(visit.word("line")), _number(visit.word("file")), visit.word("side", "new")
    if line is None or file is None:
        raise ValidationFailed("a comment needs the number of a line", hint="such as 12")
    read = await visit.call(read_pr_diff, {"issue_id": issue, "revision": revision})
    said = {"path": await path_of(read, file, side), "side": side, "line": line, "content": visit.word("content")}
    made = await visit.call(add_line_comment, {"issue_id": issue, "revision": revision, **said}, issue=issue)
    return await visit.done("Noted. It goes to the worker if you reject.", to=_back(visit, f"#{made['id']}"))


@action("/issues/{identifier}/diff/comments/{comment}/remove")
async def remove_comment(visit: Visit) -> Response:
    """Take back a comment of one's own."""
    issue = visit.path["identifier"]
    await visit.call(remove_line_comment, {"issue_id": issue, "comment_id": visit.path["comment"]}, issue=issue)
    return await visit.done("Removed.", to=_back(visit))


@action("/issues/{identifier}/diff/approve")
async def approve(visit: Visit) -> Response:
    """Approve the revision that was read."""
    issue = visit.path["identifier"]
    given = {"revision": _revision(visit), "reason": visit.word("reason") or None}
    await visit.call("approve_pr", given, issue=issue)
    return await visit.done("Approved. It can be merged now.", to=_back(visit, "#standing"))


@action("/issues/{identifier}/diff/reject")
async def reject(visit: Visit) -> Response:
    """Reject the revision that was read. The reason, what to fix and the comments on lines go to the next worker."""
    issue = visit.path["identifier"]
    if not visit.word("reason"):
        raise ValidationFailed("a rejection needs a reason", hint="say what is wrong: the next worker reads it")
    given = {"revision": _revision(visit), "reason": visit.word("reason")}
    await visit.call("reject_pr", {**given, "fix_instructions": visit.word("fix_instructions") or None}, issue=issue)
    return await visit.done("Rejected. The next worker is told why.", to=_back(visit, "#standing"))


@action("/issues/{identifier}/diff/merge")
async def merge(visit: Visit) -> Response:
    """Merge the revision that was read."""
    issue = visit.path["identifier"]
    method = visit.word("method", "merge")
    given = {"issue_id": issue, "revision": _revision(visit), "reason": visit.word("reason") or None}
    if method not in METHODS:
        raise ValidationFailed(f"there is no way to merge called {method[:50]}", hint=f"one of {', '.join(METHODS)}")
    merged = await visit.call("merge_pr", {**given, "method": method}, issue=issue)
    where = f" as {merged['commit'][:12]}" if merged["commit"] else ""
    return await visit.done(f"Merged{where}.", to=_back(visit, "#standing"))


@action("/issues/{identifier}/diff/publish")
async def publish(visit: Visit) -> Response:
    """Push the branch of the revision that was read, and open its pull request on GitHub."""
    issue, revision = visit.path["identifier"], _revision(visit)
    done = await visit.call(publish_pr, {"issue_id": issue, "revision": revision}, issue=issue)
    words = "It was there before" if done["repeated"] else "Published"
    return await visit.done(f"{words}: {done['url']}", to=_back(visit, "#standing"))


async def _standing(visit: Visit, issue: str, revision: int | None) -> Values:
    """What is known of the pull request, and what the person may do with it."""
    found = await visit.call(read_pr, {"issue_id": issue, "revision": revision})
    tools = {"approve": "approve_pr", "reject": "reject_pr", "merge": "merge_pr", "comment": add_line_comment}
    may = {name: await visit.may(tool, issue=issue) for name, tool in tools.items()}
    undecided = found["pr"]["status"] in ("open", "approved") and found["pr"]["revision"] == found["newest"]
    may["comment"] = may["comment"] and undecided
    return {**found, "may": may}


async def _asked(visit: Visit, standing: Values, view: View) -> Asked:
    revision = standing["pr"]["revision"]
    found = await visit.call(read_pr_diff, {"issue_id": standing["identifier"], "revision": revision})
    around = {
        "csrf": visit.csrf, "url": visit.url, "identifier": standing["identifier"], "may": standing["may"],
        "view": view, "revision": revision,
    }  # fmt: skip
    return Asked(pr_id=found["pr_id"], diff=found["diff"], view=view, comments=standing["line_comments"], around=around)


def _view(visit: Visit) -> View:
    return "split" if visit.query.get("view") == "split" else "unified"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else None


def _revision(visit: Visit) -> int:
    """The revision that the form was made for: what came since was not read."""
    found = _number(visit.word("revision"))
    if found is None:
        raise ValidationFailed("the form does not say which revision was read", hint="load the page again")
    return found


def _back(visit: Visit, fragment: str = "") -> str:
    """The page as it was when the form was sent."""
    kept = {name: visit.word(name) for name in ("view", "q", "page") if visit.word(name)}
    return visit.url(f"/issues/{quote(visit.path['identifier'])}/diff", **kept) + fragment
