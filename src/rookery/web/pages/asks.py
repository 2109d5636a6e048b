"""Asks: what agents want to know or to do, and what people say to it."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from rookery.asks.answering import said_in_form
from rookery.core.errors import Conflict, RookeryError, ValidationFailed
from rookery.domains.owner.ask_details import look_at_asks
from rookery.web.ask_view import LENGTHS, exact_input, outcome, shown_ask
from rookery.web.routing import Nav, action, page
from rookery.web.showing import ago, one_line
from rookery.web.visit import Visit

Ask = dict[str, Any]
OVER = ("over", "answered", "withdrawn", "expired")
KINDS = ("question", "approval", "elicitation", "schedule", "verdict")
PAGE = 50
MOST_TOGETHER = 100
VERDICTS = {"approve": "approved", "deny": "denied", "later": "put off", "dismiss": "dismissed"}


@page("/asks", nav=Nav("Asks", "", 20, "asks", count="asks"))
async def asks(visit: Visit) -> Response:
    """What waits for a person, or what became of what did."""
    tab = "answered" if visit.query.get("tab") == "answered" else "open"
    wanted = _filters(visit) if tab == "answered" else {"status": "open"}
    found = await visit.call(look_at_asks, wanted)
    shown = [shown_ask(ask, whole=False) for ask in found["asks"]]
    agents: list[Ask] = (await visit.call("list_agents"))["agents"] if tab == "answered" else []
    return await visit.render(
        "asks.html",
        tab=tab,
        asks=shown,
        next_cursor=found["next_cursor"],
        seen_ms=max((ask["created_ms"] for ask in shown), default=0),
        agents=[agent["name"] for agent in agents],
        kinds=KINDS,
        statuses=OVER,
        **await _offered(visit),
    )


@page("/asks/{id}")
async def one_ask(visit: Visit) -> Response:
    """All of one ask."""
    ask = shown_ask(await _ask(visit), whole=True)
    return await visit.render("ask.html", ask=ask, seen_ms=ask["created_ms"], **await _offered(visit))


@page("/asks/{id}/input")
async def input_of_ask(visit: Visit) -> Response:
    """The exact input of an approval, and nothing else, as it was kept."""
    ask = await _ask(visit)
    text = exact_input(ask).encode("utf-8", "backslashreplace")
    return Response(text, 200, {"Content-Disposition": f'inline; filename="{ask["short"]}.txt"'}, "text/plain")


@action("/asks/batch")
async def answer_several(visit: Visit) -> Response:
    """The same decision about each that was selected; who was faster elsewhere is told of."""
    chosen = list(dict.fromkeys(visit.words("id")))
    verdict = visit.word("verdict")
    if verdict not in VERDICTS:
        raise ValidationFailed("this is no decision about several", hint="approve, deny, put off or dismiss them")
    if not 1 <= len(chosen) <= MOST_TOGETHER:
        raise ValidationFailed(f"1 to {MOST_TOGETHER} asks can be answered together", hint="select them first")
    done, left = 0, list[str]()
    for ask_id in chosen:
        try:
            ask = await _ask(visit, ask_id)
            await visit.call("answer_ask", {"ask_id": ask_id, **_decision(ask, verdict, visit.word("reason"))})
            done += 1
        except RookeryError as error:
            left.append(f"{ask_id[:8]}: {error.message}")
    said = [f"{done} {VERDICTS[verdict]}." if done else "", f"Not done: {'; '.join(left)}" if left else ""]
    return await visit.done(" ".join(part for part in said if part)[:400], visit.url("/asks"), refresh="asks waiting")


@action("/asks/{id}/answer")
async def answer(visit: Visit) -> Response:
    """Take an answer. Of several people the first counts, and the others are told what that one said."""
    ask_id = visit.path["id"]
    ask = await _ask(visit, ask_id)
    similar = {"similar": True, "seen_ms": _number(visit.word("seen_ms"))} if visit.word("similar") else {}
    try:
        found = await visit.call("answer_ask", {"ask_id": ask_id, **_answer(visit, ask), **similar})
    except Conflict as late:
        return await _told_who_was_first(visit, ask_id, late)
    answered: list[Ask] = found["asks"]
    back = visit.word("back")
    to = back if back.startswith("/sessions/") else visit.url("/asks")
    return await visit.done(_noted(answered), to, refresh="asks waiting")


def _answer(visit: Visit, ask: Ask) -> dict[str, Any]:
    verdict = visit.word("verdict")
    if verdict == "approve-for":
        return {"answer": f"approve for {visit.word('length')}"}
    if verdict in VERDICTS:
        return _decision(ask, verdict, visit.word("reason"))
    said = said_in_form(ask["choices"], visit.word("choice"), visit.word("text"), decides=ask["decides"])
    if not said:
        raise ValidationFailed("there is no answer yet", hint="choose an option or write one")
    return {"answer": said}


def _decision(ask: Ask, verdict: str, reason: str) -> dict[str, Any]:
    if verdict == "dismiss":
        return {"dismiss": True}
    if not ask["decides"]:
        raise ValidationFailed("a question wants an answer", hint="open it, and choose or write one")
    return {"answer": said_in_form(ask["choices"], verdict, reason, decides=True)}


def _noted(answered: Sequence[Ask]) -> str:
    """What a person is told who has answered."""
    first, others = answered[0], len(answered) - 1
    if first["status"] == "open":
        said = "Put off: it stays open"
    elif first["status"] == "withdrawn":
        said = "Dismissed: the agent goes on without an answer"
    else:
        said = f"Answered: {one_line(first['answer'], 80)}"
    return f"{said}, and {others} alike." if others else f"{said}."


async def _told_who_was_first(visit: Visit, ask_id: str, late: Conflict) -> Response:
    ask = await _ask(visit, ask_id)
    if ask["status"] == "open":
        raise late
    when = f", {ago(ask['answered_ms'])}" if ask["answered_ms"] else ""
    words = f"Somebody was faster. {one_line(outcome(ask), 160)}{when}. The first answer counts."
    return await visit.done(words, visit.url(f"/asks/{ask_id}"), refresh="asks waiting")


async def _ask(visit: Visit, ask_id: str | None = None) -> Ask:
    found = await visit.call(look_at_asks, {"ask_id": (ask_id or visit.path["id"])[:100]})
    return found["asks"][0]


async def _offered(visit: Visit) -> dict[str, Any]:
    """What templates of asks need besides them."""
    return {"may_answer": await visit.may("answer_ask"), "lengths": LENGTHS, "outcome": outcome}


def _filters(visit: Visit) -> dict[str, Any]:
    """What the filters say, as far as it makes sense."""
    query = visit.query
    status, kind = query.get("status", ""), query.get("kind", "")
    wanted: dict[str, Any] = {"status": status if status in OVER else "over", "limit": PAGE}
    if kind in KINDS:
        wanted["kind"] = kind
    for name, given in (("agent", "agent"), ("words", "q"), ("cursor", "cursor")):
        if query.get(given):
            wanted[name] = query[given][:200]
    return wanted


def _number(word: str) -> int:
    return int(word) if word.isdecimal() and len(word) < 16 else 0
