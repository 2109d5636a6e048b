"""cat_fact against a server of our own on this machine: what it sends, and what becomes of what comes back."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from rookery_echo import cat_tools

from rookery.testing import Bench, BenchClient, Era, ToolFailed


class FactServer:
    """An HTTP server that gives every request the same answer, or none."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: bytes | None = response(json.dumps({"fact": "Cats purr.", "length": 10}).encode())

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return "http://{}:{}".format(*self._server.sockets[0].getsockname())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append((await reader.readline()).decode().split(" ")[1])
        if self.answer is None:
            await reader.read()  # until the client has had enough
        else:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer)
        writer.close()

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()


def response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture
async def facts(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FactServer]:
    server = FactServer()
    monkeypatch.setenv(cat_tools.URL_SETTING, await server.start())
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    await server.stop()


@pytest.fixture
async def ada(bench: Bench, era: Era) -> BenchClient:
    """An agent to whom the owner has granted the tool."""
    client = await bench.client("ada", era=era)
    await bench.grant("ada", "cat_fact")
    return client


async def test_an_agent_without_a_grant_asks_nobody(bench: Bench, era: Era, facts: FactServer) -> None:
    with pytest.raises(ToolFailed) as refused:
        await (await bench.client("bob", era=era)).call("cat_fact")
    assert (refused.value.code, facts.asked) == ("PERMISSION_DENIED", [])


async def test_a_fact_is_fetched(ada: BenchClient, facts: FactServer) -> None:
    answer = await ada.call("cat_fact")
    assert (answer.text, answer["length"]) == ("Cats purr.", 10)
    await ada.call("cat_fact", max_length=40)
    assert facts.asked == ["/fact", "/fact?max_length=40"]


@pytest.mark.parametrize("max_length", [0, -1, 10_001])
async def test_a_wrong_length_asks_nobody(ada: BenchClient, facts: FactServer, max_length: int) -> None:
    with pytest.raises(ToolFailed, match="max_length"):
        await ada.call("cat_fact", max_length=max_length)
    assert facts.asked == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (response(b"{}", "500 Internal Server Error"), "answered 500"),
        (response(b"", "302 Found", "Location: http://127.0.0.1:9/"), "answered 302"),
        (response(b"<html>"), "no fact"),
        (response(b"{}"), "no fact"),
        (response(b"[]"), "no fact"),
        (response(b'{"fact": 7}'), "no fact"),
        (response(b'{"fact": ""}'), "no fact"),
        (response(b"[" * 60_000), "no fact"),
        (response(b'{"fact": "' + b"x" * 70_000 + b'"}'), "far too much"),
        (b"what?\r\n\r\n", "out of reach"),
        (b"", "out of reach"),
    ],
    ids=["500", "moved", "html", "empty", "list", "number", "nothing", "deep", "long", "no http", "hung up"],
)
async def test_a_broken_service_is_unavailable(ada: BenchClient, facts: FactServer, answer: bytes, told: str) -> None:
    facts.answer = answer
    with pytest.raises(ToolFailed, match=told) as failed:
        await ada.call("cat_fact")
    assert (failed.value.code, failed.value.retryable) == ("SERVICE_UNAVAILABLE", True)


async def test_a_service_that_is_not_there_is_unavailable(
    ada: BenchClient, facts: FactServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await facts.stop()
    for nowhere in (None, "http://127.0.0.1:1", "no address"):
        if nowhere is not None:
            monkeypatch.setenv(cat_tools.URL_SETTING, nowhere)
        with pytest.raises(ToolFailed, match="out of reach") as failed:
            await ada.call("cat_fact")
        assert failed.value.code == "SERVICE_UNAVAILABLE"


async def test_a_slow_service_is_not_waited_for(
    ada: BenchClient, facts: FactServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cat_tools.LIMIT_S == 5
    monkeypatch.setattr(cat_tools, "LIMIT_S", 0.5)
    facts.answer = None
    with pytest.raises(ToolFailed, match="took longer") as failed:
        await ada.call("cat_fact")
    assert (failed.value.code, facts.asked) == ("TIMEOUT", ["/fact"])
