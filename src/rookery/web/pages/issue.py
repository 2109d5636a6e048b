"""An issue: what is asked, how far it has come, everything that happened to it, and the ways to steer it."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.responses import Response

from rookery.core.errors import NotFound, RookeryError, ValidationFailed
from rookery.domains.tracker.issue_timeline import KINDS, read_timeline, read_timeline_record
from rookery.domains.tracker.phase_reading import read_phases
from rookery.lifecycle.states import PHASES
from rookery.web.editing import editable
from rookery.web.issue_forms import edited
from rookery.web.routing import action, page
from rookery.web.showing import as_json, markdown
from rookery.web.visit import Visit

Values = dict[str, Any]
FINISHED = ("done", "cancelled")
SIZES = ("XS", "S", "M", "L", "XL")


@page("/issues/{identifier}")
async def issue(visit: Visit) -> Response:
    """The whole page, or one of its live parts."""
    parts: dict[str, Callable[[Visit, str], Coroutine[Any, Any, Values]]] = {
        "track": _track,
        "facts": _facts,
        "timeline": _timeline,
    }
    wanted = visit.path["identifier"]
    if visit.wants_part in parts:
        return await visit.render("issue.html", **await parts[visit.wants_part](visit, wanted))
    values = await _facts(visit, wanted) | await _track(visit, wanted) | await _timeline(visit, wanted)
    shown = values["issue"]
    may = {
        "edit": shown["status"] not in FINISHED and await visit.may("edit_issue", issue=wanted),
        "move": bool(values["moves"]) and await visit.may("set_issue_status", issue=wanted),
        "comment": await visit.may("add_comment", issue=wanted),
    }
    described = await asyncio.to_thread(markdown, shown["description"])
    fixed = {"phases_named": PHASES, "sizes": SIZES}
    return await visit.render("issue.html", may=may, described=described, was=_editable(values), **fixed, **values)


@page("/issues/{identifier}/artifacts/{phase}")
async def artifact(visit: Visit) -> Response:
    """What the latest claim of a phase delivered, with the verdict that it waits for or has."""
    wanted, phase = visit.path["identifier"], visit.path["phase"]
    track = await _track(visit, wanted)
    step = next((each for each in track["phases"] if each["phase"] == phase), None)
    if step is None:
        raise NotFound(f"there is no phase {phase[:50]}", hint=f"one of {', '.join(PHASES)}")
    text = await visit.read(f"issue://{quote(track['identifier'])}/artifacts/{quote(phase)}")
    is_markdown = (step["claim"]["artifact_path"] or "").lower().endswith((".md", ".markdown"))
    shown = await asyncio.to_thread(markdown, text) if is_markdown else None
    judge = step["judgeable"] and await visit.may("approve_phase", issue=wanted)
    return await visit.render("artifact.html", step=step, text=text, shown=shown, judge=judge, **track)


@page("/issues/{identifier}/timeline/{kind}/{key}")
async def record(visit: Visit) -> Response:
    """One entry of the timeline, whole."""
    wanted = visit.path["identifier"]
    if visit.path["kind"] not in KINDS:
        raise NotFound("there is no such record", hint="the issue's page lists all")
    asked = {"issue_id": wanted, "kind": visit.path["kind"], "key": visit.path["key"]}
    found = await visit.call(read_timeline_record, asked)
    entry = await asyncio.to_thread(_readable, found["entry"])
    return await visit.render("timeline_record.html", identifier=wanted, entry=entry)


@action("/issues/{identifier}/edit")
async def edit(visit: Visit) -> Response:
    """Change fields of the issue."""
    wanted = visit.path["identifier"]
    await visit.require("edit_issue", issue=wanted)
    fields = edited({name: value for name, value in visit.form.items() if isinstance(value, str)})
    if not fields:
        return await visit.done("Nothing was different.", to=_back(visit))
    changed = await visit.call("edit_issue", {"issue_id": wanted, **fields}, issue=wanted)
    return await visit.done(f"Changed: {', '.join(changed['changed']) or 'nothing'}.", to=_back(visit))


@action("/issues/{identifier}/status")
async def move(visit: Visit) -> Response:
    """Move the issue as the state machine lets a person."""
    wanted = visit.path["identifier"]
    given = {"issue_id": wanted, "status": visit.word("status"), "reason": visit.word("reason") or None}
    moved = await visit.call("set_issue_status", given, issue=wanted)
    return await visit.done(f"{moved['identifier']} is {moved['status'].replace('_', ' ')}.", to=_back(visit))


@action("/issues/{identifier}/comments")
async def comment(visit: Visit) -> Response:
    """Add a comment."""
    wanted = visit.path["identifier"]
    if not visit.word("content"):
        raise ValidationFailed("the comment is empty", hint="write something first")
    await visit.call("add_comment", {"content": visit.word("content")}, issue=wanted)
    return await visit.done("Commented.", to=_back(visit) + "#timeline")


@action("/issues/{identifier}/artifacts/{phase}/verdict")
async def judge(visit: Visit) -> Response:
    """Approve or reject exactly the artifact that was read."""
    wanted, phase = visit.path["identifier"], visit.path["phase"]
    given = {"phase": phase, "artifact_hash": visit.word("hash"), "reason": visit.word("reason")}
    if visit.word("verdict") == "approve":
        told = await visit.call("approve_phase", given, issue=wanted)
    else:
        fix = visit.word("fix_instructions")
        told = await visit.call("reject_phase", {**given, **({"fix_instructions": fix} if fix else {})}, issue=wanted)
    return await visit.done(told["message"], to=_back(visit))


async def _facts(visit: Visit, wanted: str) -> Values:
    """The issue's own fields, why it waits, and what it has cost."""
    found = await visit.call("get_issue", {"issue_id": wanted})
    identifier = found["identifier"]
    waiting = await _if_known(visit.call("why_waiting", {"issue_id": identifier}))
    costs = await _if_known(visit.call("get_costs", {"by": "issue", "id": identifier}))
    return {
        "issue": found,
        "identifier": identifier,
        "phase": found["labels"][0].removeprefix("phase:"),
        "labels": found["labels"][1:],
        "waits": waiting,
        "costs": costs["total"] if costs else None,
    }


def _editable(values: Values) -> dict[str, Markup]:
    """The fields of the form, which hidden ones repeat: what is sent back as it was shown is not saved."""
    issue = values["issue"]
    fields = {
        "title": issue["title"],
        "description": issue["description"],
        "priority": str(issue["priority"]),
        "size": issue["size"] or "",
        "phase": values["phase"],
        "labels": ", ".join(values["labels"]),
        "depends_on": ", ".join(each["identifier"] for each in issue["depends_on"]),
    }
    return {name: editable(value) for name, value in fields.items()}


async def _track(visit: Visit, wanted: str) -> Values:
    found = await visit.call(read_phases, {"issue_id": wanted})
    return {"identifier": found["identifier"], "phases": found["phases"], "moves": found["moves"], "pr": found["pr"]}


async def _timeline(visit: Visit, wanted: str) -> Values:
    chosen = [kind for kind in visit.request.query_params.getlist("kind") if kind in KINDS]
    cursor = visit.query.get("cursor") or None
    asked = {"issue_id": wanted, "kinds": chosen or list(KINDS), "cursor": cursor}
    found = await visit.call(read_timeline, asked)
    entries = await asyncio.to_thread(lambda: [_readable(entry) for entry in found["entries"]])
    return {
        "identifier": found["identifier"],
        "entries": entries,
        "totals": found["totals"],
        "next_cursor": found["next_cursor"],
        "cursor": cursor,
        "chosen": chosen,
        "kinds": KINDS,
        "timeline_url": partial(_timeline_url, visit, found["identifier"], chosen, cursor),
    }


def _timeline_url(visit: Visit, identifier: str, chosen: list[str], here: str | None, part: str, at: str | None) -> str:
    """The page with the same filters, from where it is now (None) or from another cursor."""
    named = {"project": visit.project, "cursor": here if at is None else at, "part": part}
    query = [*((name, value) for name, value in named.items() if value), *(("kind", kind) for kind in chosen)]
    return f"/issues/{quote(identifier)}?{urlencode(query)}"


def _readable(entry: Values) -> Values:
    """The entry with its texts as HTML, in a thread: much Markdown takes its time."""
    texts = ("content", "summary", "details", "reason", "fix_instructions")
    shown = {name: markdown(entry[name]) for name in texts if isinstance(entry.get(name), str) and entry[name]}
    values = {name: _value(entry.get(name)) for name in ("old", "new")} if entry["kind"] == "change" else {}
    return {**entry, **values, "shown": shown}


def _value(value: Any) -> str:
    if value in (None, "", []):
        return "nothing"
    return value if isinstance(value, str) else as_json(value, 2_000)


async def _if_known(asked: Coroutine[Any, Any, Values]) -> Values | None:
    """What a tool answers; None if it is not the person's to ask, or the issue has just moved."""
    try:
        return await asked
    except RookeryError:
        return None


def _back(visit: Visit) -> str:
    return visit.url(f"/issues/{quote(visit.path['identifier'])}")
