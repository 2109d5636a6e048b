"""What is logged: one JSON object a line, with the ids of the call it belongs to, and nothing that was said in it."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rookery.around import logs
from rookery.around.logs import JsonFormatter, configure_logs
from tests.server.conftest import Place
from tests.server.conftest import plugin as plugin
from tests.server.processes import Client, outcome
from tests.server.trials import SECRET

ROOT = Path(__file__).parents[2]
MARKER = "mauve-heron-7731"
IDS = {"session": "session-1", "tenant": "default", "trace": "trace-1"}


@pytest.fixture
def lines(database_url: str, tmp_path: Path) -> list[dict[str, Any]]:
    """What a process logs that makes every call there is, well and badly."""
    command = [sys.executable, "-m", "tests.around.talker", database_url, str(tmp_path / "home"), MARKER]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    assert MARKER not in done.stderr
    return [json.loads(line) for line in done.stderr.split("\n") if line]


def test_a_process_logs_one_object_a_line_with_the_ids_of_the_call(lines: list[dict[str, Any]]) -> None:
    assert all(isinstance(line, dict) for line in lines)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    failed = [line for line in lines if line["message"].endswith(" failed")]
    assert {line["request"] for line in failed} == {
        f"req-{tool}" for tool in ("add_and_break", "add_again", "look_and_break", "reach_and_break")
    }
    assert all(IDS.items() <= line.items() and line["agent"] for line in failed)
    assert all("Error" in line["traceback"] and "workload.py" in line["traceback"] for line in failed)


def test_what_a_handler_logs_in_its_thread_has_the_ids_too(lines: list[dict[str, Any]]) -> None:
    about = {line["request"]: line for line in lines if line["message"] == "about to break"}
    assert set(about) == {"req-add_and_break", "req-look_and_break"}
    assert all(IDS.items() <= line.items() for line in about.values())


def test_what_python_itself_complains_of_is_logged_the_same_way(lines: list[dict[str, Any]]) -> None:
    own = [line for line in lines if "talker.py" in line.get("traceback", "")]
    assert [line["message"] for line in own] == [
        "a thread ended with an error",
        "an error was ignored in a finalizer",
        "the process ends with an error",
    ]
    assert all("ValueError" in line["traceback"] for line in own)
    assert any("take care" in line["message"] and line["level"] == "warning" for line in lines)
    [umlaut] = [line for line in lines if line["logger"] == "rookery.talker"]
    assert umlaut["message"] == "two\nlines and \u2028 an umlaut: ü"


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """The root logger, as it was afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    names = ("mcp", "uvicorn", "sqlalchemy", "httpx2", "asyncio")
    levels = {name: logging.getLogger(name).level for name in names}
    yield root
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, old in levels.items():
        logging.getLogger(name).setLevel(old)


def test_the_level_is_respected_and_libraries_are_quiet(root_logger: logging.Logger) -> None:
    stream = io.StringIO()
    configure_logs("warning", stream)
    logging.getLogger("rookery.x").info("not this")
    logging.getLogger("rookery.x").warning("this")
    logging.getLogger("uvicorn").info("nor this")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["this"]


def test_a_file_in_the_folder_has_the_same_lines(root_logger: logging.Logger, tmp_path: Path) -> None:
    stream = io.StringIO()
    configure_logs("info", stream, str(tmp_path / "logs"))
    logging.getLogger("rookery.x").info("kept", extra={"request": "req-1"})
    assert (tmp_path / "logs" / "rookery.log").read_text(encoding="utf-8") == stream.getvalue()
    assert json.loads(stream.getvalue())["request"] == "req-1"
    assert (tmp_path / "logs").stat().st_mode & 0o077 == 0


def test_ids_that_are_not_known_are_left_out() -> None:
    record = logging.LogRecord("rookery", logging.INFO, __file__, 1, "hello %s", ("you",), None)
    line = json.loads(JsonFormatter().format(record))
    assert line["message"] == "hello you"
    assert set(line).isdisjoint(logs.IDS)


def test_a_message_that_cannot_be_encoded_is_still_one_line(root_logger: logging.Logger) -> None:
    raw = io.BytesIO()
    configure_logs("info", io.TextIOWrapper(raw, encoding="ascii", errors="strict", write_through=True))
    logging.getLogger("rookery.x").info("ü and \ud800")
    assert json.loads(raw.getvalue())["message"] == "ü and \ud800"


def test_the_files_that_are_kept_have_a_limited_size(
    root_logger: logging.Logger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "KEPT_BYTES", 1000)
    monkeypatch.setattr(logs, "KEPT_FILES", 3)
    configure_logs("info", io.StringIO(), str(tmp_path))
    for number in range(200):
        logging.getLogger("rookery.x").info("line %d", number)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(kept) == {"rookery.log", "rookery.log.1", "rookery.log.2", "rookery.log.3"}
    assert all(len(text) <= 1000 for text in kept.values())
    assert json.loads(kept["rookery.log"].splitlines()[-1])["message"] == "line 199"


@pytest.fixture
def place(plugin: Path) -> Iterator[Place]:
    made = Place(plugin)
    yield made
    made.close()


def say_everything(client: Client, trace: str) -> str:
    """Let calls succeed and fail with the marker in their arguments and results; returns the request of a failure."""
    meta = {"traceparent": trace, "note": MARKER}
    for name, arguments in (
        ("save_note", {"text": MARKER}),
        ("list_notes", {}),
        ("measure_text", {"text": MARKER}),
        ("save_and_fail", {"text": MARKER}),
        ("ping", {MARKER: MARKER}),
        ("spin_writing", {"text": MARKER}),
        ("create_agent", {"name": MARKER}),
    ):
        client.request("tools/call", name=name, arguments=arguments, _meta=meta)
    client.send(f'{{"jsonrpc":"2.0","id":"{MARKER}"'.encode() + b"\n")
    client.next()
    failed = client.request("tools/call", name="fail_writing", arguments={"text": MARKER}, _meta=meta)
    return outcome(failed)["error"]["hint"].rpartition(" ")[2]


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "relay"])
def test_a_failing_handler_is_one_line_with_every_id_and_nothing_that_was_said_is_anywhere(
    place: Place, direct: bool
) -> None:
    place.env["ROOKERY_LOG_LEVEL"] = "debug"
    server = None if direct else place.server()
    owner = place.session("--as-owner", direct=direct)
    made = owner.request("tools/call", name="create_token", arguments={"name": "laptop", "agent": "default"})
    token = outcome(made)["secret"]
    client, trace = place.session("--session-id", "ses-1", direct=direct), f"00-{'4bf92f35' * 4}-{'00f067aa' * 2}-01"
    request = say_everything(client, trace)
    agent = owner.call("list_agent_settings")["agents"][0]["id"]
    speaker = server or client
    [line] = [each for each in map(json.loads, speaker.errors.splitlines()) if each.get("request") == request]
    assert line["message"] == "fail_writing failed"
    ids = {"request": request, "session": "ses-1", "tenant": "default", "agent": agent, "trace": trace}
    assert {key: line[key] for key in logs.IDS} == {**ids, "operation": "tools/call fail_writing"}
    if server is not None:
        kept = place.home / "logs" / "rookery.log"
        assert json.loads(kept.read_text().splitlines()[-1])["request"] == request
        assert kept.read_text() == server.errors
        assert kept.parent.stat().st_mode & 0o777 == 0o700
    written = [path for path in place.home.rglob("*") if path.is_file() and ".log" in path.name]
    assert len(written) == (2 if direct else 4)
    for path in written:
        for secret in (MARKER, SECRET, token.removeprefix("rk_")):
            assert secret not in path.read_text(), path


def test_a_server_that_shall_log_errors_only_keeps_quiet_about_the_rest(place: Place) -> None:
    place.env["ROOKERY_LOG_LEVEL"] = "error"
    server = place.server()
    client = place.session()
    client.call("ping")
    assert server.errors == ""
    client.call("fail_reading")
    assert [json.loads(line)["level"] for line in server.errors.splitlines()] == ["error"]
