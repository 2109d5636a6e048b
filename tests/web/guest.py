"""A client of the console without a browser: fast, and on both databases."""

import html
import re
from typing import Any

import httpx2

from rookery.db.tx import Tx
from rookery.identity.signing_in import open_session
from rookery.identity.store import IdentityStore
from rookery.server.http import WebApp
from rookery.web.signed_in import form_token
from tests.platform_fixtures import Fleet


class Guest:
    """Sends requests to the application itself. Nobody until `signed_in`."""

    def __init__(self, fleet: Fleet, web: WebApp, token: str | None = None) -> None:
        self.fleet = fleet
        self.web = web
        self.token = token
        cookies = {} if token is None else {f"rookery_{fleet.platform.settings.port}": token}
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=web),
            base_url="http://127.0.0.1",
            cookies=cookies,  # pyright: ignore
        )
        self._others: list[Guest] = []

    def signed_in(self, person: str | None = None) -> "Guest":
        """The same server as the owner, or another person, sees it."""

        def enter(tx: Tx) -> str:
            store = IdentityStore(tx, "default")
            who = store.owner() if person is None else store.person(person)
            return open_session(tx, "default", who.id, "a test")

        token = self.fleet.platform.database.direct(enter, write=True)
        self._others.append(Guest(self.fleet, self.web, token))
        return self._others[-1]

    async def get(self, path: str, **how: Any) -> httpx2.Response:
        return await self.client.get(path, **how)

    async def part(self, path: str, part: str) -> httpx2.Response:
        """One block of a page, as htmx asks for it."""
        joint = "&" if "?" in path else "?"
        return await self.client.get(f"{path}{joint}part={part}", headers={"HX-Request": "true"})

    async def post(self, path: str, fields: dict[str, Any] | None = None, **how: Any) -> httpx2.Response:
        """A form of ours, with its token."""
        token = {} if self.token is None else {"csrf": form_token(self.token)}
        return await self.client.post(path, data={**token, **(fields or {})}, **how)

    async def words(self, path: str) -> str:
        """What a page shows, without its tags; it must be there."""
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text[:2000]
        return words_of(answer.text)

    async def close(self) -> None:
        for each in (self, *self._others):
            await each.client.aclose()


def words_of(page: str) -> str:
    """The text of a page, spaces made one."""
    bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.S)
    return " ".join(html.unescape(bare).split())
