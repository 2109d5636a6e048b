"""`rookery connect … --http`: an address and a token instead of a program to start."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rookery.cli.connect import CLIENTS, servers
from rookery.identity.store import DEFAULT_AGENT
from tests.cli.terminal import LIMIT_S, Terminal

FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cursor": ".cursor/mcp.json",
}
URL = "http://127.0.0.1:4242/mcp"


@pytest.fixture
def terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    """In a folder of its own, with no client's home moved elsewhere."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "rookery"
    program.touch(0o755)
    return terminal


def words(client: str, *options: str) -> list[str]:
    return ["connect", client, "--command", str(Path.cwd().parent / "rookery"), *options]


def file_of(terminal: Terminal, client: str) -> Path:
    return terminal.user / FILES[client] if client in FILES else Path.cwd() / ".vscode/mcp.json"


def entry_in(client: str, text: str) -> dict[str, Any]:
    found = tomllib.loads(text) if client == "codex" else json.loads(text)
    return found[CLIENTS[client].key]["rookery"]


def expected(client: str, secret: str, url: str = URL) -> dict[str, Any]:
    bearer = {"Authorization": f"Bearer {secret}"}
    match client:
        case "codex":
            return {"url": url, "http_headers": bearer}
        case "gemini":
            return {"httpUrl": url, "headers": bearer}
        case "opencode":
            return {"type": "remote", "url": url, "enabled": True, "oauth": False, "headers": bearer}
        case _:
            return {"type": "http", "url": url, "headers": bearer}


def secret_in(entry: dict[str, Any]) -> str:
    headers = entry.get("headers") or entry["http_headers"]
    return headers["Authorization"].removeprefix("Bearer ")


def tokens(terminal: Terminal) -> list[tuple[str, str, str]]:
    """Name, kind of holder and holder of every token that has not been revoked."""
    found = terminal.json("token", "--json")
    return [(each["name"], each["holder_kind"], each["holder"]) for each in found if not each["revoked"]]


def test_the_default_agent_has_the_same_name_everywhere() -> None:
    assert servers.DEFAULT_AGENT == DEFAULT_AGENT


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_the_address_and_a_token_of_the_default_agent(terminal: Terminal, client: str) -> None:
    said = terminal.ok(*words(client, "--http"))
    file = file_of(terminal, client)
    assert f"reaches {URL}" in said
    entry = entry_in(client, file.read_text())
    secret = secret_in(entry)
    assert entry == expected(client, secret)
    assert secret not in said
    assert file.stat().st_mode & 0o077 == 0
    [(name, kind, _)] = tokens(terminal)
    assert (name, kind) == (client, "agent")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_second_run_changes_nothing_and_makes_no_second_token(terminal: Terminal, client: str) -> None:
    terminal.ok(*words(client, "--http"))
    before = file_of(terminal, client).read_bytes()
    assert "already" in terminal.ok(*words(client, "--http"))
    assert file_of(terminal, client).read_bytes() == before
    assert len(tokens(terminal)) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_that_starts_a_program_is_left_and_no_token_is_made(terminal: Terminal, client: str) -> None:
    terminal.ok(*words(client))
    before = file_of(terminal, client).read_bytes()
    told = terminal.fails(*words(client, "--http"))
    assert "has another rookery entry" in told
    assert "rookery token create" in told
    assert file_of(terminal, client).read_bytes() == before
    assert tokens(terminal) == []


def test_another_address_is_another_entry(terminal: Terminal) -> None:
    terminal.ok(*words("cursor", "--http"))
    assert "another rookery entry" in terminal.fails(*words("cursor", "--url", "https://rookery.example.org/mcp"))


def test_the_token_is_that_of_the_agent_who_was_named(terminal: Terminal) -> None:
    made = terminal.json("agents", "create", "ada", "--json")
    terminal.ok(*words("claude", "--http", "--agent", "ada"))
    [(_, kind, holder)] = tokens(terminal)
    assert (kind, holder in (made["id"], "ada")) == ("agent", True)


def test_an_agent_that_is_not_there_is_refused_and_nothing_is_written(terminal: Terminal) -> None:
    assert "nobody" in terminal.fails(*words("claude", "--http", "--agent", "nobody"))
    assert not file_of(terminal, "claude").exists()


@pytest.mark.parametrize("flag", ["--agent-type", "--project-id"])
def test_what_only_a_started_session_can_be_told_is_refused(terminal: Terminal, flag: str) -> None:
    assert flag in terminal.fails(*words("claude", "--http", flag, "worker"))
    assert not file_of(terminal, "claude").exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_print_shows_an_entry_that_works_and_writes_nothing(terminal: Terminal, client: str) -> None:
    result = terminal.run(*words(client, "--http", "--print"))
    entry = entry_in(client, result.stdout)
    assert entry == expected(client, secret_in(entry))
    assert not file_of(terminal, client).exists()
    assert len(tokens(terminal)) == 1
    if client == "claude":
        bearer = f"--header 'Authorization: Bearer {secret_in(entry)}'"
        assert f"claude mcp add --scope user --transport http rookery {URL} {bearer}" in result.stderr


def test_vscode_has_a_command_for_all_projects(terminal: Terminal) -> None:
    told = terminal.fails(*words("vscode", "--http", "--scope", "user"))
    assert "code --add-mcp" in told
    assert '"type": "http"' in told


def test_a_token_in_a_project_comes_with_a_warning(terminal: Terminal) -> None:
    assert "version control" in terminal.ok(*words("claude", "--http", "--scope", "project"))


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({"PORT": "5000"}, "http://127.0.0.1:5000/mcp"),
        ({"ROOKERY_HTTP_PATH": "/agents"}, "http://127.0.0.1:4242/agents"),
        ({"ROOKERY_PUBLIC_URL": "https://rookery.example.org"}, "https://rookery.example.org/mcp"),
        ({"ROOKERY_HOST": "::1"}, "http://[::1]:4242/mcp"),
        ({"ROOKERY_HOST": "0.0.0.0"}, "http://127.0.0.1:4242/mcp"),
    ],
)
def test_the_address_is_that_of_the_settings(terminal: Terminal, settings: dict[str, str], url: str) -> None:
    terminal.environ |= settings
    terminal.ok(*words("claude", "--http"))
    assert entry_in("claude", file_of(terminal, "claude").read_text())["url"] == url


def test_an_open_port_needs_the_address_to_be_named(terminal: Terminal) -> None:
    terminal.environ["PORT"] = "0"
    assert "--url" in terminal.fails(*words("claude", "--http"))
    terminal.ok(*words("claude", "--url", "http://127.0.0.1:5001/mcp"))
    assert entry_in("claude", file_of(terminal, "claude").read_text())["url"] == "http://127.0.0.1:5001/mcp"


@pytest.mark.parametrize("url", ["127.0.0.1:4242", "ftp://example.org", "http://${HOST}/mcp", "http://a b\n/mcp"])
def test_an_address_that_no_client_can_use_is_refused(terminal: Terminal, url: str) -> None:
    assert repr(url) in terminal.fails(*words("claude", "--url", url))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_wants_none_of_our_tokens_gets_none(terminal: Terminal, client: str) -> None:
    terminal.environ["ROOKERY_AUTH_MODE"] = "none"
    terminal.ok(*words(client, "--http"))
    entry = entry_in(client, file_of(terminal, client).read_text())
    assert entry == {
        key: value for key, value in expected(client, "").items() if "eaders" not in key and key != "oauth"
    }
    assert tokens(terminal) == []


def test_the_plain_command_shows_the_other_way_and_makes_no_token_for_it(terminal: Terminal) -> None:
    result = terminal.run(*words("claude", "--agent", "ada"))
    [line] = [each for each in result.stderr.splitlines() if "HTTP instead" in each]
    assert f"claude mcp add --scope user --transport http rookery {URL} --header" in line
    assert "token create claude --agent ada" in line
    assert not terminal.home.exists()


def test_settings_that_cannot_be_read_do_not_keep_a_client_from_starting_sessions(terminal: Terminal) -> None:
    terminal.environ["PORT"] = "high"
    assert "HTTP instead" not in terminal.run(*words("claude")).output
    assert file_of(terminal, "claude").exists()


def test_of_runs_beside_each_other_one_token_stays(terminal: Terminal) -> None:
    command = [sys.executable, "-m", "rookery.entry", *words("claude", "--http")]
    running = [subprocess.Popen(command, env=terminal.full_environ(), stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait(LIMIT_S) for process in running] == [0, 0, 0]
    assert len(tokens(terminal)) == 1
