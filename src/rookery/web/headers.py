"""What every answer of the console carries: nothing runs that is not ours, nobody frames it, nobody keeps it."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from rookery.core.errors import RookeryError

Endpoint = Callable[[Request], Awaitable[Response]]
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
ON_TLS: Mapping[str, str] = {"Strict-Transport-Security": "max-age=31536000"}


def guarded(response: Response, *, secure: bool) -> Response:
    """The same answer with the headers that it has not set itself."""
    for name, value in {**HEADERS, **(ON_TLS if secure else {})}.items():
        response.headers.setdefault(name, value)
    return response


def safely(endpoint: Endpoint, *, secure: bool) -> Endpoint:
    """The same endpoint; whatever it answers or refuses has the headers, unless it has set one of them itself."""

    async def answer(request: Request) -> Response:
        try:
            response = await endpoint(request)
        except RookeryError as error:
            response = PlainTextResponse(f"{error.message}\n", error.http)
        return guarded(response, secure=secure)

    return answer
