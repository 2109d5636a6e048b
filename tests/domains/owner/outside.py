"""A fleet whose owner answers from outside: by a link, in a chat, in a comment."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import sqlalchemy as sa

from rookery.asks.store import Asks, NewAsk
from rookery.asks.tables import asks
from rookery.core.events import Event
from rookery.core.hook import FORM, HookAnswer, HookRequest
from rookery.domains.owner.hooks import answer_by_link
from rookery.domains.owner.notify_tables import notification_deliveries
from rookery.domains.owner.outside_tables import ask_links, channel_listeners
from tests.domains.owner.telling import Telling
from tests.outgoing.loopback import Web
from tests.platform_fixtures import Fleet

LINK = re.compile(r"http://127\.0\.0\.1:4242/hooks/asks/([^/\s\"]+)/([A-Za-z0-9_-]{43})")


class Outside(Telling):
    """Speaks as agents, their owner, and whoever else comes along."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(fleet)
        self.events: list[Event] = []
        self.platform.events.subscribe(self.events.append)

    def ask(self, **given: Any) -> str:
        """An open ask of the default agent, whose deliveries wait; its id."""
        agent = self.agent
        wanted = {"kind": "question", "agent_id": agent.agent, "question": "Which one?", "options": ["red", "blue"]}
        new = NewAsk(**{**wanted, **given})
        return self.platform.database.direct(lambda tx: Asks(tx, agent.tenant).open(new)[0].id, write=True)

    def row(self, ask_id: str) -> Any:
        return self.platform.database.direct(lambda tx: tx.one(sa.select(asks).where(asks.c.id == ask_id)))

    def noted(self) -> int:
        """How many deliveries are known by what their channel calls them: nobody answers others by a reply."""
        wanted = sa.select(sa.func.count()).where(notification_deliveries.c.external_ref.is_not(None))
        return self.platform.database.direct(lambda tx: tx.scalar(wanted))

    def answer(self, ask_id: str, text: str, via: str = "cli") -> None:
        def given(tx: Any) -> None:
            Asks(tx, "default").answer(ask_id, text, "owner", via)

        self.platform.database.direct(given, write=True)

    async def linked(self, web: Web, **given: Any) -> tuple[str, str]:
        """An ask that was told on the owner's webhook: its id, and the token of its link."""
        await self.configure(self.owner, "set", "webhook", config={"url": web.url})
        ask_id = self.ask(**given)
        await self.work()
        found = LINK.findall(web.seen[-1].body.decode())
        assert found[0][0] == ask_id
        return found[0]

    async def get(self, ask_id: str, token: str) -> HookAnswer:
        request = HookRequest({"id": ask_id, "token": token}, {}, b"", "GET")
        return await answer_by_link.handler(self.platform.calls, request)

    async def post(self, ask_id: str, token: str, **form: str) -> HookAnswer:
        request = HookRequest({"id": ask_id, "token": token}, {"content-type": FORM}, urlencode(form).encode())
        return await answer_by_link.handler(self.platform.calls, request)

    def state(self) -> list[Any]:
        """Everything that answers change."""
        tables = (asks, ask_links, channel_listeners)
        return [self.platform.database.direct(lambda tx, table=table: tx.all(sa.select(table))) for table in tables]

    def answers(self) -> list[Event]:
        return [event for event in self.events if event.name == "AskAnswered"]


async def until(found: Callable[[], Any], within_s: float = 20.0) -> Any:
    """What is found as soon as it is there."""
    deadline = time.monotonic() + within_s
    while not (there := found()):
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)
    return there
