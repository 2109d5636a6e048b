"""`rookery doctor`: every check is broken on purpose, and says how to mend it."""

import json
import os
import socket
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rookery.cli.checks import EXTRAS, NEEDED
from rookery.cli.doctor import examine
from rookery.cli.machine import Machine, this_machine
from rookery.relay import socket_path
from rookery.settings import Settings
from rookery.web.rendering import rendered
from tests.cli.examined import MIB, change, expect, sound_machine, with_environ, with_settings
from tests.cli.terminal import Terminal

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def machine(terminal: Terminal) -> Machine:
    return sound_machine(terminal)


def test_a_sound_machine_has_nothing_to_mend(machine: Machine) -> None:
    assert [found for found in examine(machine) if found.state != "ok" or found.mend] == []


def test_a_home_that_is_not_there_yet_is_no_problem(terminal: Terminal) -> None:
    found = {each["check"]: each for each in terminal.json("doctor", "--json")}
    assert found["home"]["state"] == found["database"]["state"] == "note"
    assert not terminal.home.exists()


def test_a_problem_is_exit_code_1_and_a_note_is_not(terminal: Terminal) -> None:
    terminal.ok("tools")
    assert "note     mnemonic" in terminal.ok("doctor")
    terminal.home.chmod(0o755)
    done = terminal.run("doctor")
    assert done.exit_code == 1
    assert "problem  home" in done.stdout
    assert f"-> chmod 700 {terminal.home}" in done.stdout
    told = json.loads(terminal.run("doctor", "--json").stdout)
    assert {tuple(each) for each in told} == {("check", "state", "sentence", "mend")}


def test_an_old_python_is_a_problem(machine: Machine) -> None:
    expect(replace(machine, python=(3, 10, 4)), "python", "problem", "3.10.4", "3.11")


def test_a_missing_package_is_a_problem(machine: Machine) -> None:
    expect(replace(machine, installed=lambda name: name != "starlette"), "packages", "problem", "starlette")


def test_a_server_without_uvloop_is_slower(machine: Machine) -> None:
    expect(replace(machine, installed=lambda name: name != "uvloop"), "packages", "note", "uvloop")


def test_the_packages_and_extras_are_those_of_the_project() -> None:
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    needed = {line.partition(">")[0].partition("[")[0].lower() for line in project["dependencies"] if ";" not in line}
    modules = {
        "pyjwt": "jwt",
        "markdown-it-py": "markdown_it",
        "pyyaml": "yaml",
        "python-multipart": "python_multipart",
    }
    assert set(NEEDED) == {modules.get(name, name) for name in needed}
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"dev"}


def test_extras_that_are_absent_are_named(machine: Machine) -> None:
    expect(replace(machine, installed=lambda name: name == "a2a"), "extras", "ok", "Installed: a2a;", "claude")


def test_a_collector_without_the_extra_is_a_problem(machine: Machine) -> None:
    broken = replace(machine, installed=lambda name: not name.startswith("opentelemetry"))
    broken = with_environ(broken, OTEL_EXPORTER_OTLP_ENDPOINT="http://localhost:4318")
    expect(broken, "extras", "problem", "rookery[otel]")


def test_agents_of_claude_without_the_extra_are_a_problem(machine: Machine) -> None:
    broken = replace(machine, installed=lambda name: name != "claude_agent_sdk")
    expect(with_settings(broken, runtime="claude"), "extras", "problem", "rookery[claude]")
    expect(with_settings(broken, runtime="scripted"), "extras", "ok", "claude")


def test_modules_that_are_not_compiled_are_noted(machine: Machine) -> None:
    (Path(machine.package) / "module.py").touch()
    expect(machine, "bytecode", "note", "1 of 1 modules", "compileall")
    expect(with_environ(machine, PYTHONDONTWRITEBYTECODE="1"), "bytecode", "note", "PYTHONDONTWRITEBYTECODE keeps")


def test_a_shell_that_forbids_compiling_is_noted(machine: Machine) -> None:
    expect(with_environ(machine, PYTHONDONTWRITEBYTECODE="1"), "bytecode", "note", "unset PYTHONDONTWRITEBYTECODE")


def test_a_home_that_is_no_folder_is_a_problem(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    expect(with_settings(machine, home=str(tmp_path / "file")), "home", "problem", "not a folder")


def test_a_home_that_others_can_reach_is_a_problem(machine: Machine) -> None:
    os.chmod(machine.settings.home, 0o750)
    expect(machine, "home", "problem", "mode 750", "chmod 700")


def test_a_home_of_another_user_is_a_problem(machine: Machine) -> None:
    # Root can give the folder away; anybody else looks at a folder that root has.
    if os.geteuid() == 0:
        os.chown(machine.settings.home, 12345, -1)
    else:
        machine = with_settings(machine, home="/")
    expect(machine, "home", "problem", "another user")


def test_a_home_that_cannot_be_written_is_a_problem(machine: Machine) -> None:
    os.chmod(machine.settings.home, 0o500)
    expect(machine, "home", "problem", "cannot be written")
    os.chmod(machine.settings.home, 0o700)


def test_settings_that_cannot_be_read_are_a_problem(machine: Machine) -> None:
    (Path(machine.settings.home) / "rookery.toml").write_text("port = 'high'\n")
    broken = this_machine(environ={"ROOKERY_HOME": machine.settings.home})
    expect(replace(machine, settings_error=broken.settings_error), "settings", "problem", "'high'", "must be int")
    assert broken.settings.home == machine.settings.home


def test_little_space_is_noted_and_none_is_a_problem(machine: Machine) -> None:
    expect(replace(machine, free=lambda path: 500 * MIB), "disk", "note", "Only 500 MiB")
    expect(replace(machine, free=lambda path: 5 * MIB), "disk", "problem", "Only 5 MiB", "make room")


def test_a_broken_plugin_is_a_problem_by_name(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "plugins" / "magpie-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: magpie\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[rookery.domains]\nmagpie = magpie_is_not_there\n")
    monkeypatch.syspath_prepend(str(metadata.parent))
    broken = with_settings(machine, plugins=True)
    expect(broken, "plugins", "problem", "magpie", "ROOKERY_PLUGINS=false")
    expect(broken, "database", "note", "mend the plugins first")


@pytest.mark.parametrize("version", [(3, 7, 0), (3, 40, 1), (3, 51, 2)])
def test_an_sqlite_with_the_wal_reset_bug_is_noted(machine: Machine, version: tuple[int, ...]) -> None:
    if version >= (3, 35):
        expect(replace(machine, sqlite=version), "sqlite", "note", "WAL-reset", "3.51.3", "lock beside the database")
    else:
        expect(replace(machine, sqlite=version), "sqlite", "problem", "too old")


def test_the_sqlite_of_a_postgresql_installation_does_not_matter(machine: Machine) -> None:
    other = with_settings(machine, database="postgresql://127.0.0.1:1/rookery")
    expect(replace(other, sqlite=(3, 6, 0)), "sqlite", "ok", "not in use")


def test_a_database_that_is_damaged_is_a_problem(machine: Machine) -> None:
    (Path(machine.settings.home) / "rookery.db").write_text("no database " * 1000)
    expect(machine, "database", "problem", "not a database", "rookery restore")
    expect(machine, "tokens", "ok", "Not looked at")


def test_a_postgresql_that_does_not_answer_is_a_problem(machine: Machine) -> None:
    broken = with_settings(machine, database="postgresql://rookery@127.0.0.1:1/rookery")
    expect(broken, "database", "problem", "out of reach", "PostgreSQL runs")


def test_a_database_of_no_known_kind_is_a_problem(machine: Machine) -> None:
    expect(with_settings(machine, database="oracle://localhost/x"), "database", "problem", "of no kind we know")


def test_a_newer_schema_is_a_problem(machine: Machine) -> None:
    change(machine, "INSERT INTO schema_migrations VALUES ('audit', 99, 'from the future', 0)")
    expect(machine, "database", "problem", "is at 99", "newer version")


def test_a_schema_that_lacks_steps_is_noted(machine: Machine) -> None:
    change(machine, "DELETE FROM schema_migrations WHERE domain = 'audit'")
    expect(machine, "database", "note", "1 migration steps are missing", "rookery migrate")


def test_tokens_that_are_over_or_soon_will_be_are_noted(terminal: Terminal, machine: Machine) -> None:
    terminal.ok("token", "create", "for-years", "--expires", "400d")
    expect(machine, "tokens", "ok", "1 tokens")
    terminal.ok("token", "create", "for-a-day", "--expires", "1d")
    expect(machine, "tokens", "note", "within a week: for-a-day")
    change(machine, "UPDATE tokens SET expires_ms = 1 WHERE name = ?", "for-a-day")
    expect(machine, "tokens", "note", "Over, and refused from now on: for-a-day", "rookery token create")
    change(machine, "UPDATE tokens SET revoked_ms = 1 WHERE name = ?", "for-a-day")
    expect(machine, "tokens", "ok")


@pytest.fixture
def unix_server(machine: Machine) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        path = socket_path(machine.settings.home)
        Path(path).parent.mkdir(mode=0o700, exist_ok=True)
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        yield listener
        os.unlink(path)


def test_a_socket_is_live_stale_or_open_to_others(machine: Machine, unix_server: socket.socket) -> None:
    expect(machine, "socket", "ok", "A server answers")
    os.chmod(socket_path(machine.settings.home), 0o666)
    expect(machine, "socket", "problem", "Other users can reach", "chmod 600")
    os.chmod(socket_path(machine.settings.home), 0o600)
    unix_server.close()
    expect(machine, "socket", "note", "a server that is gone", "rookery up removes it")


def test_something_else_in_the_sockets_place_is_a_problem(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "h").mkdir(0o700)
    moved = with_settings(machine, home=str(tmp_path / "h"))
    path = Path(socket_path(moved.settings.home))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(0o600)
    try:
        expect(moved, "socket", "problem", "not a socket")
    finally:
        path.unlink()


@pytest.fixture
def web_server() -> Iterator[Callable[[str], int]]:
    """Serves one page on a free port and says which."""
    running: list[tuple[HTTPServer, threading.Thread]] = []

    def serve(page: str) -> int:
        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
                return None

        server = HTTPServer(("127.0.0.1", 0), Page)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((server, thread))
        return server.server_port

    yield serve
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def sign_in_page() -> str:
    return rendered("sign_in.html", {"error": "", "offered": False, "sso": "", "csrf": ""})


def test_a_port_that_another_program_holds_is_a_problem(machine: Machine, web_server: Callable[[str], int]) -> None:
    port = web_server("hello")
    expect(with_settings(machine, port=port), "port", "problem", f"Another program holds 127.0.0.1:{port}", "--port")


def test_a_port_of_the_rookery_of_another_home_is_a_problem(machine: Machine, web_server: Callable[[str], int]) -> None:
    expect(with_settings(machine, port=web_server(sign_in_page())), "port", "problem", "Rookery of another home")


def test_a_port_of_our_own_server_is_fine(
    machine: Machine, unix_server: socket.socket, web_server: Callable[[str], int]
) -> None:
    expect(with_settings(machine, port=web_server(sign_in_page())), "port", "ok", "held by the server of this home")


def test_an_address_that_this_machine_does_not_have_is_a_problem(machine: Machine) -> None:
    expect(with_settings(machine, host="192.0.2.1"), "port", "problem", "192.0.2.1:0 cannot be used")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_authentication_by_tokens_is_said_and_fine_on_this_machine(machine: Machine, host: str) -> None:
    expect(with_settings(machine, host=host), "auth", "ok", "Local", host)
    expect(
        with_settings(machine, host=host, auth_mode="jwt", auth_secret="x" * 32), "auth", "ok", "shared secret", host
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "rookery.example"])
def test_tokens_that_travel_unencrypted_are_a_problem(machine: Machine, host: str) -> None:
    expect(with_settings(machine, host=host), "auth", "problem", host, "unencrypted", "127.0.0.1", "public_url")
    expect(with_settings(machine, host=host, public_url="http://rookery.example"), "auth", "problem", "unencrypted")
    expect(with_settings(machine, host=host, public_url="https://rookery.example"), "auth", "ok", "Local")


def test_an_open_door_is_noted_and_one_for_every_web_page_is_a_problem(machine: Machine) -> None:
    expect(with_settings(machine, auth_mode="none"), "auth", "note", "Nobody needs a token", "auth_mode")
    expect(with_settings(machine, auth_mode="none", http_origins=("*",)), "auth", "problem", "every web page")


def test_tokens_without_scopes_are_noted(machine: Machine) -> None:
    lenient = with_settings(machine, auth_mode="jwt", auth_secret="x" * 32, auth_scope_checks=False)
    expect(lenient, "auth", "note", "need no scopes", "auth_scope_map")
    expect(with_settings(machine, auth_scope_checks=False), "auth", "ok", "Local")


def test_a_missing_git_is_noted(machine: Machine, tmp_path: Path) -> None:
    expect(with_environ(machine, PATH=str(tmp_path)), "git", "note", "install git")


def test_a_missing_github_token_is_noted_and_a_present_one_is_not_shown(machine: Machine) -> None:
    expect(with_settings(machine, github_token=""), "github", "note", "GITHUB_TOKEN")
    assert all("secret-of-github" not in f"{found.sentence}{found.mend}" for found in examine(machine))
    expect(machine, "github", "ok", "token is set")
    app = with_settings(machine, github_app_id="7", github_app_installation_id=9, github_app_key="k")
    expect(app, "github", "ok", "App 7 is set")


def test_every_check_that_the_issue_names_is_there(machine: Machine) -> None:
    named = "python extras database sqlite socket port auth tokens mnemonic sealing git github disk bytecode home"
    assert set(named.split()) <= {found.check for found in examine(machine)}
    assert isinstance(machine.settings, Settings)
