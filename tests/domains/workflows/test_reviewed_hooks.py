"""Hooks over HTTP: who may call, and what happens to a call that is broken off."""

from typing import Any

import pytest

from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from tests.domains.workflows.workshop import Workshop, chain, node


async def post(
    workshop: Workshop, path: str, secret: str, *messages: dict[str, Any], **headers: str
) -> list[dict[str, Any]]:
    """What the server sends to one POST whose body comes in these messages."""
    platform = workshop.fleet.platform
    app = WebApp(platform, make_authenticator(platform.settings), None)
    given = {"host": "127.0.0.1:4242", "authorization": f"Bearer {secret}", **headers}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "server": ("127.0.0.1", 4242), "client": ("127.0.0.1", 5000),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []
    rest = list(messages)

    async def receive() -> dict[str, Any]:
        return rest.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def body(text: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": text, "more_body": more}


@pytest.fixture
async def waiting(workshop: Workshop) -> dict[str, Any]:
    """Where a waiting node is told, and its secret."""
    run_id = await workshop.start(workshop.owner, chain(node("w", "webhook_wait")))
    return (await workshop.status(run_id))["waiting"][0]


async def test_a_name_that_the_server_does_not_have_is_refused(workshop: Workshop, waiting: dict[str, Any]) -> None:
    sent = await post(workshop, waiting["path"], waiting["secret"], body(b"{}"), host="evil.example")
    assert sent[0]["status"] == 421


async def test_a_page_that_calls_without_the_secret_is_refused(workshop: Workshop, waiting: dict[str, Any]) -> None:
    sent = await post(workshop, waiting["path"], "guess", body(b"{}"), origin="https://evil.example")
    assert sent[0]["status"] == 401


async def test_a_program_that_names_its_origin_may_deliver(workshop: Workshop, waiting: dict[str, Any]) -> None:
    sent = await post(workshop, waiting["path"], waiting["secret"], body(b"{}"), origin="https://hooks.example")
    assert sent[0]["status"] == 200


async def test_a_delivery_that_is_broken_off_is_no_error_of_the_server(
    workshop: Workshop, waiting: dict[str, Any]
) -> None:
    gone = {"type": "http.disconnect"}
    await post(workshop, waiting["path"], waiting["secret"], body(b'{"a', more=True), gone)
    sent = await post(workshop, waiting["path"], waiting["secret"], body(b"{}"))
    assert sent[0]["status"] == 200


async def test_a_large_body_is_refused_however_it_comes(workshop: Workshop, waiting: dict[str, Any]) -> None:
    parts = [body(b" " * 40_000, more=True) for _ in range(3)]
    sent = await post(workshop, waiting["path"], waiting["secret"], *parts)
    assert sent[0]["status"] == 413
