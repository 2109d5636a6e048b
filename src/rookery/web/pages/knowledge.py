"""Knowledge: one search box over documents, learnings and one's own memories, and each of them as a list."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import InvalidParams
from rookery.domains.knowledge.people import MAX_UPLOAD, upload_document, vault_status
from rookery.domains.tracker.learning_people import list_learnings, rate_learning
from rookery.web.knowledge_search import KINDS, search
from rookery.web.routing import Nav, action, page
from rookery.web.visit import Visit

HOME = "/knowledge"
TABS = ("documents", "learnings", "memories")
PAGE = 100
Json = dict[str, Any]


@page(HOME, nav=Nav("Knowledge", "Project", 80, "knowledge"))
async def knowledge(visit: Visit) -> Response:
    """What was found if something is looked for, else one of the lists."""
    query = visit.query.get("q", "").strip()[:1000]
    kinds = [kind for kind in KINDS if visit.query.get("kind") in (None, "", kind)]
    tab = visit.query.get("tab", "documents")
    tab = tab if tab in TABS else "documents"
    values: Json = {
        "query": query,
        "kind": kinds[0] if len(kinds) == 1 else "",
        "kinds": KINDS,
        "vault": await visit.call(vault_status),
        "tab": "" if query else tab,
        "found": await search(visit, query, kinds) if query else None,
    }
    return await visit.render("knowledge.html", **values, **await _LISTS["" if query else tab](visit))


async def _nothing(visit: Visit) -> Json:
    return {}


async def _documents(visit: Visit) -> Json:
    listed = {"limit": PAGE, "after": visit.query.get("after", "")}
    found = await visit.call("list_documents", listed)
    return {
        **found,
        "max_upload": MAX_UPLOAD,
        "may_upload": await visit.may(upload_document),
        "may_delete": await visit.may("vault_delete"),
        "may_update": await visit.may("vault_update"),
        "may_configure": await visit.may("configure_vault"),
    }


async def _learnings(visit: Visit) -> Json:
    chosen = visit.query.get("learning") or None
    found = await visit.call(list_learnings, {"learning_id": chosen, "limit": PAGE})
    return {**found, "chosen": chosen, "may_rate": await visit.may(rate_learning)}


async def _owners(visit: Visit) -> list[Json]:
    """How many memories everybody has, agents by their names."""
    names = {f"agent:{each['id']}": each["name"] for each in (await visit.call("list_agents"))["agents"]}
    owners = (await visit.call("report_memories"))["owners"]
    return [{**each, "owner": names.get(each["owner"], each["owner"])} for each in owners]


async def _memories(visit: Visit) -> Json:
    """One's own, and how many everybody has. Only one's own are ever read."""
    key = visit.query.get("memory") or None
    wanted: Json = {"limit": 50} if key is None else {"key": key}
    found = await visit.call("recall_memory", wanted)
    report: list[Json] = []
    if await visit.may("report_memories"):
        report = await _owners(visit)
    may_save = await visit.may("save_memory")
    return {**found, "report": report, "memory_key": key or "", "may_save": may_save}


_LISTS = {"": _nothing, "documents": _documents, "learnings": _learnings, "memories": _memories}


@action(HOME + "/learnings/{id}/rate")
async def rate(visit: Visit) -> Response:
    """Say whether a learning holds, and how useful it is."""
    given: Json = {"learning_id": visit.path["id"]}
    if visit.word("verified") in ("yes", "no"):
        given["verified"] = visit.word("verified") == "yes"
    if quality := visit.word("quality_score"):
        if not quality.isdecimal():
            raise InvalidParams("quality_score: is not a number from 0 to 100", hint="such as 80")
        given["quality_score"] = int(quality)
    await visit.call(rate_learning, given)
    return await visit.done("Noted.", to=visit.url(HOME, tab="learnings"), refresh="knowledge")


@action(HOME + "/memories")
async def save_memory(visit: Visit) -> Response:
    """Remember something for oneself."""
    given: Json = {"key": visit.word("key"), "content": visit.word("content")}
    if days := visit.word("ttl_days"):
        if not days.isdecimal():
            raise InvalidParams("ttl_days: is not a number of days", hint="such as 30; empty for ever")
        given["ttl_days"] = int(days)
    saved = await visit.call("save_memory", given)
    said = {"created": "Remembered.", "updated": "Changed.", "merged": f"It joins {saved['key']}."}
    return await visit.done(said[saved["outcome"]], to=visit.url(HOME, tab="memories"))


@action(HOME + "/memories/forget")
async def forget_memory(visit: Visit) -> Response:
    """Forget one of one's own memories."""
    await visit.call("forget_memory", {"key": visit.word("key")})
    return await visit.done("Forgotten.", to=visit.url(HOME, tab="memories"))


@action(HOME + "/vault")
async def turn_vault(visit: Visit) -> Response:
    """Turn the project's vault on or off."""
    wanted = visit.word("on") == "yes"
    await visit.call("configure_vault", {"on": wanted})
    return await visit.done("The vault is on." if wanted else "The vault is off.", to=visit.url(HOME))
