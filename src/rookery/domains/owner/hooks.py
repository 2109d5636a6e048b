"""The address behind a link: a page with the question, and the form that answers it."""

from typing import TYPE_CHECKING

from rookery.asks.answering import said_in_form
from rookery.asks.store import DECIDED
from rookery.asks.tables import ANSWERED, OPEN, WITHDRAWN
from rookery.core.errors import Conflict, ValidationFailed
from rookery.core.hook import HookAnswer, HookRequest, hook
from rookery.db.tx import Tx
from rookery.domains.owner.outside_answering import Row, answer_from_outside, events_of, noted
from rookery.domains.owner.outside_links import Link, find_link, use_link
from rookery.domains.owner.outside_page import question_page, refusal_page, said_page
from rookery.identity.store import IdentityStore

if TYPE_CHECKING:
    from rookery.core.call import Calls

VIA = "link"
LIMIT_S = 30.0
CLOSED = "This link answers nothing any more: it is too old, or its channel was changed, turned off or removed."
UNKNOWN = "There is no such link. It may be too old, or not whole: copy all of it."


@hook("asks/{id}/{token}", methods=("GET", "POST"), refusal=refusal_page)
async def answer_by_link(calls: "Calls", request: HookRequest) -> HookAnswer:
    """Show the question, or take the answer. A GET changes nothing, so whoever previews links does no harm."""
    ask_id, token = request.path["id"], request.path["token"]
    if request.method == "GET":
        return await calls.database.read(lambda tx: _shown(tx, ask_id, token, request.console_of), timeout_s=LIMIT_S)
    form, rows = request.form(), list[Row]()

    def work(tx: Tx) -> HookAnswer:
        # The database may run this again after a rolled-back batch.
        rows.clear()
        return _answered(tx, request, form, rows)

    def publish() -> None:
        for event in events_of(rows):
            calls.events.publish(event)

    try:
        return await calls.database.write(work, records=lambda error: [], timeout_s=LIMIT_S, on_commit=publish)
    except Conflict:
        # Somebody else was first by a moment; by now it can be said who.
        return await calls.database.read(lambda tx: _shown(tx, ask_id, token, request.console_of), timeout_s=LIMIT_S)


def _shown(tx: Tx, ask_id: str, token: str, console_of: str | None, error: str = "") -> HookAnswer:
    link = find_link(tx, ask_id, token)
    if link is None:
        return HookAnswer(404, page=said_page(UNKNOWN))
    closed = _closed(link)
    if closed is not None:
        return HookAnswer(410, page=said_page(closed, _console(link, console_of)))
    ask = link.ask
    agent = IdentityStore(tx, link.tenant).find_agent(ask.agent_id)
    page = question_page(
        title=f"{ask.kind.capitalize()}{f' from {agent.name}' if agent is not None else ''}",
        question=ask.question,
        context=ask.context,
        options=[str(option) for option in ask.options or ()],
        free="A reason, for Deny" if ask.kind in DECIDED else "Or in your own words" if ask.options else "Your answer",
        error=error,
        console=_console(link, console_of),
    )
    return HookAnswer(400 if error else 200, page=page)


def _console(link: Link, console_of: str | None) -> str:
    """Where the ask is in the console; empty for whoever is not signed in there, or in another tenant's."""
    return f"/asks/{link.ask.id}" if console_of == link.tenant else ""


def _closed(link: Link) -> str | None:
    """Why the link answers nothing any more; None if it does."""
    ask = link.ask
    if ask.status == ANSWERED:
        return f"This was answered already by {ask.answered_by} via {ask.answered_via}. The first answer counts."
    if ask.status == WITHDRAWN:
        return "This was withdrawn: nobody waits for the answer any more."
    if ask.status != OPEN or link.over:
        return "The time for an answer is over. The agent can ask again."
    return None if link.good else CLOSED


def _answered(tx: Tx, request: HookRequest, form: dict[str, str], rows: list[Row]) -> HookAnswer:
    ask_id, token = request.path["id"], request.path["token"]
    link = find_link(tx, ask_id, token)
    if link is None or _closed(link) is not None:
        return _shown(tx, ask_id, token, request.console_of)
    try:
        with tx.savepoint():
            row = answer_from_outside(tx, link.tenant, ask_id, _said(link.ask, form), VIA)
            # Not now is no answer: the link stays good for the one that will be.
            if row.status != OPEN and not use_link(tx, token):
                raise Conflict("the link is used")
    except ValidationFailed as error:
        return _shown(
            tx, ask_id, token, request.console_of, f"{error.message}: {error.hint}" if error.hint else error.message
        )
    rows.append(row)
    return HookAnswer(200, page=said_page(noted(row), _console(link, request.console_of)))


def _said(ask: Row, form: dict[str, str]) -> str:
    choice, text = form.get("choice", "").strip(), form.get("text", "").strip()
    return said_in_form(ask.options or (), choice, text, decides=ask.kind in DECIDED)
