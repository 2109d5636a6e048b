"""Hooks over HTTP: who may be reached by what, pages for people, and forms."""

from collections.abc import Callable
from typing import Any

import pytest

from rookery.app import Platform
from rookery.core.errors import RookeryError, ServiceUnavailable, ValidationFailed
from rookery.core.hook import FORM, HookAnswer, HookRequest, hook
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from tests.platform_fixtures import Fleet


@hook("test/page/{name}", methods=("GET", "POST"), refusal=lambda reason: f"<p>no: {reason}</p>")
async def page(_calls: Any, request: HookRequest) -> HookAnswer:
    if request.path["name"] == "busy":
        raise ServiceUnavailable("busy")
    if request.path["name"] == "wrong":
        raise ValidationFailed("wrong")
    if request.path["name"] == "broken":
        raise RuntimeError("a secret")
    return HookAnswer(200, page=f"<p>{request.method} {sorted(request.form().items())}</p>")


@hook("test/program")
async def program(_calls: Any, request: HookRequest) -> HookAnswer:
    return HookAnswer(201, {"got": len(request.body)})


@pytest.fixture
def platform(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Platform:
    made = make_fleet(prepared_database_url, extra={}).platform
    made.hooks = [page, program]
    return made


async def ask(
    platform: Platform, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], str]:
    """The status, headers and body of one answer."""
    app = WebApp(platform, make_authenticator(platform.settings), None)
    given = {"host": "127.0.0.1:4242", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "server": ("127.0.0.1", 4242), "client": ("127.0.0.1", 5000),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, b"".join(part.get("body", b"") for part in sent[1:]).decode()


async def test_a_hook_is_reached_by_its_methods_alone(platform: Platform) -> None:
    for method, path in (
        ("GET", "/hooks/test/program"),
        ("PUT", "/hooks/test/page/x"),
        ("DELETE", "/hooks/test/page/x"),
    ):
        assert (await ask(platform, method, path))[0] == 405
    assert (await ask(platform, "GET", "/hooks/test/page"))[0] == 404
    assert (await ask(platform, "GET", "/hooks/test/page/x", host="evil.example"))[0] == 421


async def test_a_page_is_shown_to_nobody_else_and_runs_nothing(platform: Platform) -> None:
    for method in ("GET", "HEAD"):
        status, headers, body = await ask(platform, method, "/hooks/test/page/x")
        assert (status, body in ("<p>GET []</p>", "")) == (200, True)
        assert headers["content-type"] == "text/html; charset=utf-8"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-robots-tag"] == "noindex, nofollow"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("body", "kind", "fields"),
    [
        (b"a=1&b=%C3%BC+x", FORM, "[('a', '1'), ('b', 'ü x')]"),
        (b"a=1&a=2", f"{FORM}; charset=utf-8", "[('a', '1')]"),
        (b"a=", FORM, "[('a', '')]"),
        (b"a=1", "text/plain", "[]"),
        (b"\xff\xfe", FORM, "[]"),
        (b"&".join([b"a=1"] * 30), FORM, "[]"),
        (b"", "", "[]"),
    ],
)
async def test_a_form_is_read(platform: Platform, body: bytes, kind: str, fields: str) -> None:
    status, _, shown = await ask(platform, "POST", "/hooks/test/page/x", body, content_type=kind)
    assert (status, shown) == (200, f"<p>POST {fields}</p>")


async def test_what_is_refused_is_told_as_a_page_where_people_read(platform: Platform) -> None:
    for name, status, said in (("busy", 503, "busy"), ("wrong", 400, "wrong"), ("broken", 500, "the hook failed")):
        told = await ask(platform, "GET", f"/hooks/test/page/{name}")
        assert (told[0], told[2]) == (status, f"<p>no: {said}</p>")
    large = await ask(platform, "POST", "/hooks/test/page/x", b"x" * 70_000)
    assert (large[0], large[2].startswith("<p>no: the body has more")) == (413, True)
    large = await ask(platform, "POST", "/hooks/test/program", b"x" * 70_000)
    assert (large[0], large[1]["content-type"]) == (413, "application/json")
    assert (await ask(platform, "POST", "/hooks/test/program", b"xyz"))[::2] == (201, '{"got":3}')


def test_a_hook_is_declared_soundly() -> None:
    async def fine(_calls: Any, _request: HookRequest) -> HookAnswer:
        return HookAnswer(200)

    def blocking(_calls: Any, _request: HookRequest) -> Any:
        raise RookeryError("never")

    for pattern, methods in (("Asks", ("GET",)), ("a//b", ("GET",)), ("a", ("PUT",)), ("a", ())):
        with pytest.raises(TypeError):
            hook(pattern, methods=methods)(fine)
    with pytest.raises(TypeError):
        hook("a")(blocking)  # pyright: ignore[reportArgumentType]
