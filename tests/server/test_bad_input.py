"""Whatever a client sends, it gets what the protocol owes it, and nobody else notices."""

import json
import os
import select
import time
from collections import Counter
from typing import Any

import pytest

from tests.server.conftest import Place
from tests.server.fuzz import Fuzzer, owed
from tests.server.processes import Client

LINES = 3000
BURST = 60
MEGABYTE = 1024 * 1024


def hashable(value: Any) -> Any:
    return value if isinstance(value, int | str) else None


def burst(client: Client, lines: list[bytes], last: str) -> None:
    """Send the lines and a ping after them; everything that is owed must come, and nothing else."""
    ping = {"jsonrpc": "2.0", "id": last, "method": "tools/call", "params": {"name": "ping", "arguments": {}}}
    if client.meta is not None:
        ping["params"]["_meta"] = client.meta
    expected = sum((owed(line) for line in lines), Counter([last]))
    sending = client.meanwhile(b"\n".join([*lines, json.dumps(ping).encode(), b""]))
    got: Counter[Any] = Counter()
    while got.total() < expected.total():
        message = client.next()
        if "method" in message:
            continue
        text = json.dumps(message)
        assert "Traceback" not in text
        assert 'File "' not in text
        assert message.get("error", {}).get("code") != 0, message
        got[message["id"]] += 1
        if message["id"] == last:
            assert message["result"]["structuredContent"]["status"] == "pong"
    sending.join()
    surplus, missing = got - expected, expected - got
    assert (surplus, missing) == (Counter(), Counter()), [line for line in lines if owed(line) & (surplus + missing)]


def fuzz(client: Client, seed: int, lines: int) -> None:
    fuzzer = Fuzzer(seed, client.meta)
    for number in range(lines // BURST):
        burst(client, [fuzzer.line() for _ in range(BURST)], f"ping {number}")


@pytest.mark.parametrize("seed", [1])
def test_random_lines(shared: Place, direct: bool, seed: int) -> None:
    client, other = shared.session(direct=direct), shared.session()
    fuzz(client, seed, LINES)
    assert other.call("ping")["status"] == "pong"
    code, rest, errors = client.end()
    assert (code, rest) == (0, []), "nothing was owed any more"
    assert "Traceback" not in errors
    assert "Traceback" not in shared.servers[0].errors


def test_random_lines_of_the_newest_revision(shared: Place, direct: bool) -> None:
    client = shared.client(direct=direct).be_modern()
    assert client.call("ping")["status"] == "pong"
    fuzz(client, 2, LINES // 3)
    assert client.end()[:2] == (0, [])
    assert "Traceback" not in shared.servers[0].errors


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 13))
def test_many_more_random_lines(shared: Place, direct: bool, seed: int) -> None:
    client = shared.session(direct=direct) if seed % 2 else shared.client(direct=direct).be_modern()
    if client.meta is not None:
        client.call("ping")
    fuzz(client, seed, 20_000)
    assert client.end()[:2] == (0, [])


def test_random_lines_before_the_handshake(shared: Place, direct: bool) -> None:
    client = shared.client(direct=direct)
    fuzzer = Fuzzer(14)
    # The first request decides the protocol, so none of these may be one.
    lines = [line for line in (fuzzer.line() for _ in range(200)) if owed(line).keys() <= {None}]
    client.send(b"\n".join([*lines, b""]))
    assert client.initialize()["result"]["protocolVersion"] == "2025-11-25"
    refused = [message for message in client.seen if message["id"] is None and "error" in message]
    assert len(refused) == sum((owed(line) for line in lines), Counter()).total() == len(client.seen)
    assert client.call("ping")["status"] == "pong"


MONSTERS: dict[str, bytes] = {
    "brackets": b"[" * 100_000,
    "closed brackets": b"[" * 100_000 + b"]" * 100_000,
    "objects": b'{"a":' * 100_000,
    "nested params": b'{"id":"deep","method":"ping","params":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
    "nested params before the id": b'{"params":' + b"[" * 50_000 + b"]" * 50_000 + b',"id":"deep","jsonrpc":"2.0"}',
    "long id": b'{"jsonrpc":"2.0","id":"' + b"i" * 10 * MEGABYTE + b'","method":"ping"}',
    "long method": b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 10 * MEGABYTE + b'"}',
    "long number": b'{"jsonrpc":"2.0","id":' + b"7" * MEGABYTE + b',"method":"ping"}',
    "long key": b'{"jsonrpc":"2.0","id":1,"method":"ping","' + b"k" * 10 * MEGABYTE + b'":1}',
    "many keys": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{' + b'"k":1,' * 500_000 + b'"k":1}}',
    "spaces": b" " * 10 * MEGABYTE,
    "zeros": b"\x00" * 10 * MEGABYTE,
    "wide characters": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le"),
    "a batch of a million": b"[" + b"1," * 1_000_000 + b"1]",
}


@pytest.mark.parametrize("name", MONSTERS)
def test_monsters(client: Client, name: str) -> None:
    ping = b'{"jsonrpc":"2.0","id":"after","method":"ping"}'
    sending = client.meanwhile(b"\n".join([MONSTERS[name], ping, b""]))
    assert client.answer_to("after")["result"] == {}
    sending.join()
    assert len(client.seen) == (0 if name == "spaces" else 1)
    (answer,) = client.seen or [{"id": None}]
    known = {"nested params": "deep", "nested params before the id": "deep", "long id": "i" * 10 * MEGABYTE}
    ours = {"long method", "long key", "many keys"}
    assert answer["id"] == known.get(name, 1 if name in ours else None)
    assert "error" in answer or name in ("spaces", "long id", "long key", "many keys")
    assert client.call("ping")["status"] == "pong"


def unread(client: Client, line: bytes, count: int) -> int:
    """Send a line many times and read nothing: how many bytes the other end has taken in before it stopped."""
    os.set_blocking(client.stdin.fileno(), False)
    whole, sent = memoryview(line * count), 0
    while sent < len(whole) and select.select([], [client.stdin], [], 1.0)[1]:
        sent += os.write(client.stdin.fileno(), whole[sent : sent + 65536])
    os.set_blocking(client.stdin.fileno(), True)
    return sent


def test_ten_thousand_answers_that_nobody_reads_wait(shared: Place, direct: bool) -> None:
    client, server = shared.session(direct=direct), shared.servers[0]
    holder = client if direct else server
    before = holder.memory_mb()
    line = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ping","arguments":{}}}\n'
    assert unread(client, line, 10_000) == 10_000 * len(line)
    assert shared.session().call("ping")["status"] == "pong"
    assert holder.memory_mb() - before < 60
    for _ in range(10_000):
        assert client.next()["id"] == 5
    assert client.call("ping")["status"] == "pong"


def test_a_client_that_never_reads_is_not_read_either(shared: Place, direct: bool) -> None:
    client, server = shared.session("--as-owner", direct=direct), shared.servers[0]
    holder = client if direct else server
    before = holder.memory_mb("VmHWM")
    line = b'{"jsonrpc":"2.0","id":5,"method":"tools/list"' + b" " * 20_000 + b"}\n"
    sent = unread(client, line, 3000)
    assert sent < 3000 * len(line), "answers of a hundred megabytes were asked for"
    assert holder.memory_mb("VmHWM") - before < 80
    assert shared.session().call("ping")["status"] == "pong"
    for _ in range(sent // len(line)):
        assert client.next()["id"] == 5
    client.send(line[sent % len(line) :])
    assert client.call("ping")["status"] == "pong"


def test_thousands_of_calls_at_once_are_taken_in_by_and_by(shared: Place, direct: bool) -> None:
    client, server = shared.session(direct=direct), shared.servers[0]
    holder = client if direct else server
    before = holder.memory_mb()
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait_for_ever","arguments":{}}}\n'
    sending = client.meanwhile(b"".join(call % number for number in range(4000)))
    answers = Counter(client.next()["id"] for _ in range(4000))
    sending.join()
    assert set(answers.values()) == {1}
    assert len(answers) == 4000
    assert holder.memory_mb() - before < 100
    assert client.call("ping")["status"] == "pong"


def test_a_client_that_dies_takes_its_calls_with_it_and_nothing_else(shared: Place, direct: bool) -> None:
    client, other = shared.session(direct=direct), shared.session()
    client.ask_tool("spin_until_cancelled", text="orphan")
    client.until("notifications/message")
    client.stdout.close()
    client.stdin.close()
    began = time.monotonic()
    assert client.process.wait(20) == 0
    assert other.call("save_note", text="alive") == {"done": "alive"}
    assert time.monotonic() - began < 8, "it would have spun for most of a minute"
    assert "orphan" not in other.call("list_notes")["texts"]
    assert "Traceback" not in client.errors


def test_clients_that_vanish_leave_nothing_behind(shared: Place) -> None:
    server = shared.servers[0]
    for number in range(20):
        client = shared.session()
        client.ask_tool("count_slowly", steps=1000)
        client.send(b'{"jsonrpc":"2.0","id":7' if number % 2 else b"")
        client.kill()
    deadline = time.monotonic() + 10
    while len(os.listdir(f"/proc/{server.process.pid}/fd")) > 60:
        assert time.monotonic() < deadline
    assert shared.session().call("ping")["status"] == "pong"
    assert "Traceback" not in server.errors
