"""The pages of attestations: card, key, log and proof of each agent that has published one. Open to anybody."""

import ipaddress
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rookery import __version__
from rookery.attest.canonical import canonical
from rookery.attest.card import CARD, Origin, attester_card, origin_of
from rookery.attest.keys import address_of, public_from
from rookery.attest.log import AttestationLog, published_log
from rookery.attest.proof import is_nonce
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
NOBODY = "no agent of this name has published an attestation"
NO_NONCE = "nonce must be 64 hexadecimal digits in lower case"
NO_ADDRESS = "this server does not know the address that it is asked at; the setting public_url names it"


def attestation_routes(platform: "Platform") -> list[Route]:
    """The addresses below /attestations."""
    pages: dict[str, Page] = {"key.json": _key, "log.json": _log, CARD.removeprefix("/"): _card}
    routes = [Route(f"{PAGES}{{agent}}/{name}", _endpoint(platform, page)) for name, page in pages.items()]
    return [*routes, Route(f"{PAGES}{{agent}}/proof.json", _proof(platform))]


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
        base = platform.settings.public_url or f"{request.url.scheme}://{request.url.netloc}"
        return await _found(platform, request, lambda log: page(log, base))

    return answer


def _proof(platform: "Platform") -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        nonce, origin = request.query_params.get("nonce", ""), _own_origin(platform, request)
        if not is_nonce(nonce):
            return JSONResponse({"error": NO_NONCE}, 400, HEADERS)
        if origin is None:
            return JSONResponse({"error": NO_ADDRESS}, 409, HEADERS)
        return await _found(platform, request, lambda log: log.proof_page(nonce, origin))

    return answer


async def _found(platform: "Platform", request: Request, page: Callable[[AttestationLog], bytes | None]) -> Response:
    agent = str(request.path_params["agent"])

    def look(tx: Tx) -> bytes | None:
        log = published_log(tx, agent)
        return None if log is None else page(log)

    try:
        found = await platform.database.read(look, timeout_s=READ_S) if storable(agent) else None
    except RookeryError as error:
        return JSONResponse({"error": error.message}, 503)
    if found is None:
        return JSONResponse({"error": NOBODY}, 404)
    return Response(found, media_type="application/json", headers=HEADERS)


def _own_origin(platform: "Platform", request: Request) -> Origin | None:
    """Where this server is reached; None if it cannot tell. Whoever asks must not choose what is signed."""
    if platform.settings.public_url:
        return origin_of(platform.settings.public_url)
    asked, (here, port) = origin_of(str(request.url)), request.scope.get("server") or ("", None)
    # The guard knows the names of this server, but neither its ports nor, if it is open to all, its numbers.
    if asked is None or asked[2] != port or (_is_number(asked[1]) and asked[1] != here):
        return None
    return asked


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
