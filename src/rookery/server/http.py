"""The HTTP side of the server: the MCP endpoint, health, metrics, the console."""

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rookery.core.errors import RookeryError, Unauthorized
from rookery.server.a2a import a2a_routes
from rookery.server.api import Api
from rookery.server.attestations import attestation_routes
from rookery.server.auth import Authenticator, protected_resource_metadata
from rookery.server.hooks import HOOKS, hook_routes
from rookery.server.session import open_session
from rookery.server.streamable.answers import send_refusal
from rookery.server.streamable.endpoint import Endpoint
from rookery.server.streamable.guard import Guard, host_name
from rookery.server.streamable.requests import HttpRequest, Refusal
from rookery.settings.addresses import is_loopback

if TYPE_CHECKING:
    from rookery.app import Platform

READY_S = 2.0


class WebApp:
    """The application that uvicorn serves: MCP on its path, and pages for people and machines on the others."""

    def __init__(self, platform: "Platform", authenticator: Authenticator, endpoint: Endpoint | None) -> None:
        self._platform = platform
        self._authenticator = authenticator
        self._endpoint = endpoint
        self._guard = Guard(platform.settings)
        path = platform.settings.http_path
        self._paths = frozenset({path, f"{path}/"}) if endpoint is not None else frozenset[str]()
        self._api = Api(platform, authenticator)
        self._console = platform.console()
        well_known = "/.well-known/oauth-protected-resource"
        self._pages = Starlette(
            routes=[
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
                Route("/metrics", self._metrics),
                Route(well_known, self._protected_resource, methods=["GET", "OPTIONS"]),
                Route(well_known + path, self._protected_resource, methods=["GET", "OPTIONS"]),
                *attestation_routes(platform),
                *hook_routes(platform, self._console.visitor),
                *a2a_routes(platform, authenticator),
                *self._api.routes(),
                *self._console.routes(),
            ],
            exception_handlers={HTTPException: self._console.unknown},
        )

    async def close(self) -> None:
        """End what clients keep open."""
        await self._api.close()
        await self._console.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if self._endpoint is not None and scope["path"] in self._paths:
            await self._endpoint(scope, receive, send)
            return
        try:
            self._guard.check_host(HttpRequest(scope))
            # A hook trusts its secret alone, which no page has, and other programs may name any origin.
            if not scope["path"].startswith(HOOKS):
                self._guard.check_origin(HttpRequest(scope))
        except Refusal as refusal:
            await send_refusal(send, refusal)
            return
        await self._pages(scope, receive, send)

    async def _healthz(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _readyz(self, request: Request) -> Response:
        """Whether calls would be served now: the database answers, and the server is not stopping."""
        reason = "stopping" if self._endpoint is not None and self._endpoint.closing else None
        if reason is None:
            try:
                await self._platform.database.read(lambda tx: tx.first("SELECT 1"), timeout_s=READY_S)
            except RookeryError as error:
                reason = error.code
        if reason is None:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)

    async def _metrics(self, request: Request) -> Response:
        """Open on this machine; elsewhere for those with a token, since the counters name tools."""
        asked_as = host_name(request.headers["host"]) or ""
        if not (is_loopback(self._platform.settings.host) and is_loopback(asked_as)):
            try:
                credential = await self._authenticator.authenticate(request.headers.get("authorization"))
                await open_session(self._platform, credential.binding)
            except Unauthorized as error:
                challenge = self._authenticator.challenge(error, None)
                return JSONResponse({"error": error.message}, 401, {"WWW-Authenticate": challenge})
            except RookeryError:
                return JSONResponse({"error": "the server cannot look up who you are"}, 503)
        return PlainTextResponse(self._platform.metrics.render(), media_type="text/plain; version=0.0.4")

    async def _protected_resource(self, request: Request) -> Response:
        """Where a client learns who issues tokens for this server. Needs no token; only OAuth has such an issuer."""
        if request.method == "OPTIONS":
            asked = self._guard.preflight(HttpRequest(request.scope), "GET, OPTIONS")
            return Response(status_code=204, headers={name.decode(): value.decode("latin-1") for name, value in asked})
        if self._platform.settings.auth_mode != "oauth":
            return JSONResponse({"error": "this server does not take OAuth tokens"}, status_code=404)
        found = protected_resource_metadata(self._platform.settings, f"{request.url.scheme}://{request.url.netloc}")
        return JSONResponse(found, headers={"Cache-Control": "max-age=3600", "Access-Control-Allow-Origin": "*"})
