"""`rookery up`: one warm process with every door open."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn

from rookery.around.logs import configure_logs
from rookery.around.timing import configure_tracing
from rookery.core.errors import ConfigurationError
from rookery.db.server_lock import server_lock
from rookery.engine.orchestrator import Orchestrator
from rookery.ledger.rates import take_rates
from rookery.server.address import published_port
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from rookery.server.hub import Hub
from rookery.server.loop import run, settle_memory
from rookery.server.mcp import make_server
from rookery.server.readers import LimitedPatience
from rookery.server.socket import SocketDoor
from rookery.server.streamable.endpoint import Endpoint
from rookery.server.work import Work
from rookery.settings import Settings

if TYPE_CHECKING:
    from rookery.app import Platform

GRACE_S = 1
# Longer than the minute for which proxies keep theirs.
KEEP_ALIVE_S = 75
Announce = Callable[[int], Awaitable[None] | None]
ONE_SERVER = "stop it first, or set ROOKERY_HOME to another folder"


def serve(settings: Settings, make_platform: "Callable[[Settings], Platform]", announce: Announce) -> None:
    """Serve until a signal ends it. `announce` is told the port once every door is open."""
    os.makedirs(settings.home, mode=0o700, exist_ok=True)
    with server_lock(settings.home, hint=ONE_SERVER), contextlib.closing(_bind(settings)) as listener:
        configure_logs(settings.log_level, folder=settings.logs)
        configure_tracing("rookery")
        port = listener.getsockname()[1]
        platform = make_platform(replace(settings, port=port))
        try:
            # Here alone: a command, or a session that serves itself, may have any environment.
            take_rates(platform.database, settings)
            with published_port(settings.home, port):
                run(_serve(platform, listener, announce))
        finally:
            platform.close()


def _bind(settings: Settings) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Every connection inherits it. Not every loop sets it, and without it an answer's second write can wait 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"port {settings.port} on {settings.host} cannot be used: {error.strerror}",
            hint=f"another program holds it; choose one with PORT={settings.port + 1} or --port {settings.port + 1}",
        ) from error
    return listener


class _Http(uvicorn.Server):
    """Leaves signals to us: uvicorn would raise them again after serving, before the other doors are closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(platform: "Platform", listener: socket.socket, announce: Announce) -> None:
    server = make_server(platform)
    hub = Hub(platform)
    authenticator = make_authenticator(platform.settings)
    endpoint = Endpoint(platform, server, hub, authenticator) if platform.settings.http_mcp else None
    door = SocketDoor(platform, server, hub)
    await door.open()
    web = WebApp(platform, authenticator, endpoint)
    http = _Http(web_config(web))
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # Elsewhere, if the role is that of a server alone.
    works = [Work(platform)] if platform.settings.role == "all" else []
    orchestrator = Orchestrator(platform) if platform.settings.orchestrator else None
    serving = asyncio.create_task(http.serve(sockets=[listener]))
    while not http.started and not serving.done():
        await asyncio.sleep(0.005)
    if http.started:
        settle_memory()
        told = announce(listener.getsockname()[1])
        if told is not None:
            await told
        sys.stdout.flush()
    stopping = asyncio.create_task(stop.wait())
    try:
        # Without its worker the server would accept what is never done.
        over = (serving, stopping, *(work.ended for work in works))
        over += () if orchestrator is None else (orchestrator.ended,)
        await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        # Streams that clients keep open would keep uvicorn waiting; calls get a moment to finish.
        if endpoint is not None:
            await endpoint.close()
        await web.close()
        http.should_exit = True
        await serving
    finally:
        stopping.cancel()
        if orchestrator is not None:
            await orchestrator.stop()
        for work in works:
            await work.end()
        await door.close()
        await hub.close()
        await authenticator.close()
    if orchestrator is not None:
        orchestrator.check()
    for work in works:
        work.check()


def web_config(app: WebApp) -> uvicorn.Config:
    """How uvicorn serves: nothing told of itself, idle connections kept, streams not waited for."""
    return uvicorn.Config(
        app,
        http=LimitedPatience,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        ws="none",
        # What a proxy adds could be added by anybody; the setting public_url says how the server is reached.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
