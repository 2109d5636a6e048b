"""A session through the relay, over the life and death of the server."""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from rookery.relay_wire import ANSWER_S
from tests.relay.peers import (
    INITIALIZE,
    INITIALIZED,
    Client,
    Connection,
    Server,
    answer,
    call,
    meanwhile,
    notification,
)

MEGABYTE = 1024 * 1024


def handshake(client: Client, connection: Connection) -> None:
    client.send(INITIALIZE)
    assert connection.next() == INITIALIZE
    connection.send(answer(0, serverInfo={"name": "first"}))
    assert client.next()["id"] == 0
    client.send(INITIALIZED)
    assert connection.next() == INITIALIZED


def is_stopped(message: dict[str, Any], request_id: object) -> bool:
    error = message["error"]
    assert error["code"] == -32000
    assert error["data"]["code"] == "SERVICE_UNAVAILABLE"
    assert error["data"]["retryable"] is True
    return message["id"] == request_id and "stopped while this call was running" in error["message"]


def test_messages_pass_both_ways_unchanged(client: Client, server: Server) -> None:
    connection = server.accept()
    odd = b' {"id" : "\\u00fc,\\"", "jsonrpc":"2.0", "method":"tools/call"}\r\n'
    client.send(odd)
    assert connection.lines.raw() == odd
    reply = b'{ "result": {"text": "\xc3\xbc"}, "id": "\\u00fc,\\"", "jsonrpc": "2.0" }\n'
    connection.send(reply)
    assert client.lines.raw() == reply


def test_lines_that_are_no_messages_are_forwarded(client: Client, server: Server) -> None:
    connection = server.accept()
    lines = [
        b"\n",
        b"nonsense\n",
        b"\xff\xfe\x00\n",
        b'[{"id":1,"method":"x"}]\n',
        b'{"id":[1],"method":"x"}\n',
        b'{"id":true,"method":5}\n',
        b'{"id":1' + b"0" * 5000 + b',"method":"x"}\n',
        b'{"a":' * 20_000 + b"\n",
    ]
    for line in lines:
        client.send(line)
        assert connection.lines.raw() == line
    client.send(call(1))
    assert connection.next()["id"] == 1


def test_a_line_is_forwarded_before_it_is_complete(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(b'{"jsonrpc":"2.0",')
    connection.lines.fill()
    assert connection.lines.buffer == b'{"jsonrpc":"2.0",'


def test_a_line_of_ten_megabytes_passes_both_ways(client: Client, server: Server) -> None:
    connection = server.accept()
    text = "x" * 10 * MEGABYTE
    sending = meanwhile(lambda: client.send(call(1, text=text)))
    assert connection.next() == call(1, text=text)
    sending.join()
    sending = meanwhile(lambda: connection.send(answer(1, text=text)))
    assert client.next() == answer(1, text=text)
    sending.join()
    server.die()
    client.send(call(2))
    assert client.next()["id"] == 2, "the call that was answered is not answered again"


def test_a_slow_reader_holds_the_server_back_instead_of_filling_the_relay(client: Client, server: Server) -> None:
    connection = server.accept()
    line = json.dumps(notification("message", text="y" * MEGABYTE)).encode() + b"\n"
    connection.sock.setblocking(False)
    sent = 0
    while sent < 64 * len(line) and select.select([], [connection.sock], [], 0.5)[1]:
        sent += connection.sock.send(line[sent % len(line) :])
    assert sent < 4 * MEGABYTE
    # Both directions are independent: what the client says meanwhile still arrives.
    client.send(call(1))
    assert connection.next() == call(1)
    connection.sock.setblocking(True)
    sending = meanwhile(lambda: connection.send(line[sent % len(line) :], json.dumps(answer(1)).encode() + b"\n"))
    for _ in range(sent // len(line) + 1):
        assert client.lines.raw() == line
    assert client.next() == answer(1)
    sending.join()
    if sys.platform == "linux":
        assert client.memory_mb("VmHWM") < 20


def test_a_server_that_reads_slowly_holds_the_client_back(client: Client, server: Server) -> None:
    connection = server.accept()
    line = json.dumps(notification("message", text="z" * 100_000)).encode() + b"\n"
    os.set_blocking(client.stdin.fileno(), False)
    sent = 0
    while sent < 640 * len(line) and select.select([], [client.stdin], [], 0.5)[1]:
        sent += os.write(client.stdin.fileno(), line[sent % len(line) :][: select.PIPE_BUF])
    assert sent < 4 * MEGABYTE
    # Both directions are independent: what the server says meanwhile still arrives.
    connection.send(notification("progress"))
    assert client.next() == notification("progress")
    for _ in range(sent // len(line)):
        assert connection.lines.raw() == line


def test_calls_that_wait_are_answered_after_the_end_of_input(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(call(1), call("two"))
    client.stdin.close()
    assert [connection.next()["id"], connection.next()["id"], connection.lines.raw()] == [1, "two", b""]
    connection.send(answer(1), answer("two"))
    assert [client.next(), client.next()] == [answer(1), answer("two")]
    connection.die()
    assert client.end() == (0, b"", "")


def test_the_last_line_needs_no_newline(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(json.dumps(call(1)).encode())
    client.stdin.close()
    assert json.loads(connection.lines.raw()) == call(1)
    connection.die()
    assert is_stopped(client.next(), 1)
    assert client.process.wait(20) == 0


def test_a_client_that_stops_reading_ends_the_relay_quietly(client: Client, server: Server) -> None:
    connection = server.accept()
    client.stdout.close()
    connection.send(notification("progress"))
    assert client.process.wait(20) == 0
    assert client.stderr.read() == b""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_signal_ends_the_relay_without_a_traceback(
    client: Client, server: Server, number: signal.Signals, code: int
) -> None:
    server.accept().send(notification("progress"))
    client.next()
    assert client.signal(number) == code
    assert client.stderr.read() == b""


def test_every_call_that_waits_is_answered_when_the_server_dies(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(call(1), call("zwei ü"), call(3), call(4), notification("progress"))
    for _ in range(5):
        connection.next()
    # A request of the server may carry the number of a call that waits; it is no answer to it.
    asked = {"jsonrpc": "2.0", "id": 4, "method": "ping"}
    connection.send(answer(3), asked)
    assert [client.next(), client.next()] == [answer(3), asked]
    client.send({"jsonrpc": "2.0", "id": 4, "result": {}})
    connection.next()
    server.die()
    assert is_stopped(client.next(), 1)
    assert is_stopped(client.next(), "zwei ü")
    assert is_stopped(client.next(), 4)
    assert client.end() == (0, b"", "")


def test_answers_in_any_form_count_as_answers(client: Client, server: Server) -> None:
    connection = server.accept()
    ids = [1, -2, "three", 'fo"ur', "fünf,", ""]
    client.send(*(call(i) for i in ids))
    for _ in ids:
        connection.next()
    replies = [answer(i) for i in ids]
    replies[0] = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}
    connection.send(*replies[:-1], json.dumps(replies[-1]).encode() + b"\n")
    assert [client.next() for _ in ids] == replies
    server.die()
    assert client.end() == (0, b"", "")


def test_a_cancelled_call_gets_no_error(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(call(1), call(2), notification("cancelled", requestId=1), notification("cancelled", requestId=[]))
    for _ in range(4):
        connection.next()
    server.die()
    assert is_stopped(client.next(), 2)
    assert client.end() == (0, b"", "")


@pytest.mark.parametrize("ended", [True, False])
def test_a_subscription_fails_with_the_server_but_ends_with_its_client(
    client: Client, server: Server, ended: bool
) -> None:
    connection = server.accept()
    client.send({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"})
    connection.next()
    if ended:
        client.stdin.close()
        assert connection.lines.raw() == b""
    server.die()
    if not ended:
        assert is_stopped(client.next(), 1)
    assert client.end() == (0, b"", "")


def test_an_answer_that_the_server_did_not_finish_never_reaches_the_client(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(call(1), call(2))
    assert [connection.next()["id"], connection.next()["id"]] == [1, 2]
    connection.send(answer(1), b'{"jsonrpc":"2.0","id":2,"result":{"text":"' + b"x" * MEGABYTE)
    server.die()
    assert client.next() == answer(1)
    assert is_stopped(client.next(), 2)
    assert client.end() == (0, b"", "")


def test_what_the_server_said_before_it_died_still_arrives(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(call(1))
    connection.next()
    # More than the client's pipe takes, so that the answer waits behind it when the death is noticed.
    long = notification("message", text="m" * 150_000)
    connection.send(long, long, answer(1))
    server.die()
    client.send(call(2))
    assert [client.next(), client.next(), client.next()] == [long, long, answer(1)]
    reply = client.next()
    assert (reply["id"], reply["error"]["data"]["code"]) == (2, "SERVICE_UNAVAILABLE")


def test_a_call_that_was_half_sent_when_the_server_died_is_answered(
    client: Client, server: Server, serve: Callable[[], Server]
) -> None:
    connection = server.accept()
    line = json.dumps(call(5, text="t" * 1000)).encode() + b"\n"
    client.send(line[:600])
    connection.lines.fill()
    server.die()
    second = serve()
    client.send(line[600:])
    assert is_stopped(client.next(), 5)
    client.send(call(6))
    assert second.accept().next() == call(6)


def test_after_a_restart_the_session_goes_on_and_no_call_is_repeated(
    client: Client, server: Server, serve: Callable[[], Server]
) -> None:
    connection = server.accept()
    handshake(client, connection)
    client.send(call(1, "close_issue"))
    connection.next()
    server.die()
    assert is_stopped(client.next(), 1)
    first_hello = server.hello
    second = serve()
    client.send(call(2))
    connection = second.accept()
    assert second.hello == first_hello
    assert connection.next() == INITIALIZE
    connection.send(notification("message", text="welcome"), answer(0, serverInfo={"name": "second"}))
    assert connection.next() == INITIALIZED
    assert connection.next() == call(2)
    connection.send(answer(2))
    assert client.next() == notification("message", text="welcome")
    assert client.next() == answer(2)
    client.stdin.close()
    assert connection.lines.raw() == b""


def test_a_client_that_never_initialized_is_not_introduced(
    client: Client, server: Server, serve: Callable[[], Server]
) -> None:
    server.accept()
    server.die()
    second = serve()
    client.send(call(1))
    assert second.accept().next() == call(1)


def test_an_initialize_that_failed_is_not_replayed(client: Client, server: Server, serve: Callable[[], Server]) -> None:
    connection = server.accept()
    client.send(INITIALIZE)
    connection.next()
    server.die()
    assert is_stopped(client.next(), 0)
    second = serve()
    client.send({**INITIALIZE, "id": 1})
    assert second.accept().next() == {**INITIALIZE, "id": 1}


def test_while_the_server_is_away_calls_are_answered_and_the_relay_stays(
    client: Client, server: Server, serve: Callable[[], Server]
) -> None:
    connection = server.accept()
    client.send(INITIALIZE)
    connection.next()
    connection.send(answer(0))
    client.next()
    server.die()
    client.send(INITIALIZED, call(1), answer(9), b"\n", b"nonsense\n", call("b"))
    replies = [client.next() for _ in range(3)]
    assert [reply["id"] for reply in replies] == [1, None, "b"]
    assert all("is not running" in reply["error"]["message"] for reply in replies)
    assert "rookery up" in replies[0]["error"]["data"]["hint"]
    second = serve()
    client.send(call(2))
    connection = second.accept()
    assert connection.next() == INITIALIZE
    connection.send(answer(0))
    assert connection.next() == INITIALIZED, "what the client said meanwhile is not forgotten"
    assert connection.next() == call(2)


def test_a_server_that_hangs_holds_up_a_burst_of_calls_only_once(
    client: Client, server: Server, serve: Callable[[], Server]
) -> None:
    server.accept()
    server.die()
    serve()  # its queue takes the connection, but nobody reads it
    began = time.monotonic()
    client.send(call(1), call(2), call(3))
    assert [client.next()["id"] for _ in range(3)] == [1, 2, 3]
    assert time.monotonic() - began < 2 * ANSWER_S


def test_a_server_that_no_longer_wants_the_session_says_why(
    client: Client, server: Server, serve: Callable[[], Server]
) -> None:
    server.accept()
    server.die()
    second = serve()
    client.send(call(1))
    second.accept({"ok": False, "reason": "the agent was retired", "fallback": True})
    error = client.next()["error"]
    assert "the agent was retired" in error["message"]
    assert error["data"]["retryable"] is False


def test_a_flood_of_calls_without_a_server_does_not_fill_the_relay(client: Client, server: Server) -> None:
    server.accept()
    server.die()
    os.unlink(server.path)
    os.set_blocking(client.stdin.fileno(), False)
    line, sent = json.dumps(call(1)).encode() + b"\n", 0
    while sent < 40 * MEGABYTE and select.select([], [client.stdin], [], 0.5)[1]:
        sent += os.write(client.stdin.fileno(), line[sent % len(line) :])
    assert sent < 4 * MEGABYTE
    for _ in range(sent // len(line)):
        assert client.next()["id"] == 1
    assert client.process.poll() is None
