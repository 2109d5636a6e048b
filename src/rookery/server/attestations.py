"""The pages of attestations: the card, key and log of each agent that has published one. Open to anybody."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rookery import __version__
from rookery.attest.canonical import canonical
from rookery.attest.card import CARD, attester_card
from rookery.attest.keys import address_of, public_from
from rookery.attest.log import AttestationLog, published_log
from rookery.core.admission import storable
from rookery.core.errors import RookeryError
from rookery.db.tx import Tx

if TYPE_CHECKING:
    from rookery.app import Platform

PAGES = "/attestations/"
READ_S = 15.0
HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}
Page = Callable[[AttestationLog, str], bytes | None]


def attestation_routes(platform: "Platform") -> list[Route]:
    """The addresses below /attestations."""
    pages: dict[str, Page] = {"key.json": _key, "log.json": _log, CARD.removeprefix("/"): _card}
    return [Route(f"{PAGES}{{agent}}/{name}", _endpoint(platform, page)) for name, page in pages.items()]


def _key(log: AttestationLog, base: str) -> bytes | None:
    return log.key_page()


def _log(log: AttestationLog, base: str) -> bytes | None:
    return log.document()


def _card(log: AttestationLog, base: str) -> bytes | None:
    last = log.last()
    if last is None:
        return None
    return canonical(attester_card(base, log.agent_id, __version__, address_of(public_from(last.public_key))))


def _endpoint(platform: "Platform", page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        agent = str(request.path_params["agent"])
        base = platform.settings.public_url or f"{request.url.scheme}://{request.url.netloc}"

        def look(tx: Tx) -> bytes | None:
            log = published_log(tx, agent)
            return None if log is None else page(log, base)

        try:
            found = await platform.database.read(look, timeout_s=READ_S) if storable(agent) else None
        except RookeryError as error:
            return JSONResponse({"error": error.message}, 503)
        if found is None:
            return JSONResponse({"error": "no agent of this name has published an attestation"}, 404)
        return Response(found, media_type="application/json", headers=HEADERS)

    return answer
