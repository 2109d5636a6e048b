"""`rookery connect`, on real files below a home folder of the test's own."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

import rookery
from rookery.cli.connect import CLIENTS, connect
from rookery.cli.connect.files import replace as replace_file
from rookery.cli.connect.plans import Plan, plan
from rookery.cli.connect.servers import Launch

SOURCE = str(Path(rookery.__file__).parents[1])
RUN = f"import sys; sys.path.insert(0, {SOURCE!r}); from rookery.cli.connect import connect; connect()"
VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "ROOKERY_HOME")
USER = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cursor": ".cursor/mcp.json",
}
PROJECT = USER | {"claude": ".mcp.json", "opencode": "opencode.json", "vscode": ".vscode/mcp.json"}
WITH_COMMENTS = [name for name in CLIENTS if CLIENTS[name].syntax == "jsonc"]


class Place(NamedTuple):
    home: Path
    folder: Path
    program: Path

    def file(self, client: str) -> Path:
        return self.home / USER[client] if client in USER else self.folder / PROJECT[client]

    def write(self, client: str, text: str) -> Path:
        file = self.file(client)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode(errors="surrogateescape"))
        return file

    def run(self, client: str, *options: str) -> Result:
        return CliRunner().invoke(connect, [client, "--command", str(self.program), *options])

    def connects(self, client: str, *options: str) -> str:
        result = self.run(client, *options)
        assert result.exit_code == 0, result.output
        return result.output

    def refuses(self, client: str, *options: str) -> str:
        """What it says; its file is as it was, or still not there."""
        before = self.file(client).read_bytes() if self.file(client).is_file() else None
        result = self.run(client, *options)
        assert (result.exit_code, result.stdout) == (1, "")
        assert before == (self.file(client).read_bytes() if self.file(client).is_file() else None)
        return result.stderr


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path / "home", tmp_path / "work", tmp_path / "bin" / "rookery")
    for folder in (made.home, made.folder, made.program.parent):
        folder.mkdir()
    made.program.touch(0o755)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.chdir(made.folder)
    return made


def expected(client: str, program: Path, *args: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    words, env = ["stdio", *args], env or {}
    if client == "opencode":
        entry = {"type": "local", "command": [str(program), *words], "enabled": True}
        return entry | ({"environment": env} if env else {})
    entry = {"command": str(program), "args": words} | ({"env": env} if env or client == "claude" else {})
    return entry if client in ("codex", "gemini") else {"type": "stdio"} | entry


def parsed(client: str, file: Path) -> dict[str, Any]:
    text = file.read_text()
    return tomllib.loads(text) if client == "codex" else json.loads(text)


def others_of(client: str) -> str:
    if client == "codex":
        return "# mine\nmodel='x'\n[mcp_servers . other]\n  command =   'a'  # keep\n\n\n[tui]\ntheme = 1"
    key = CLIENTS[client].key
    return f'{{ "z":1.50,\n   "{key}" : {{"b" :{{"command": "x", "args":[ ]}} }}, "a":[1,2 ]\n}}\n\n'


def is_only_inserted_into(old: str, new: str) -> bool:
    rest = iter(new)
    return all(character in rest for character in old)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("empty", [False, True])
def test_a_fresh_or_empty_file_gets_our_entry_alone(place: Place, client: str, empty: bool) -> None:
    if empty:
        place.write(client, "\n")
    said = place.connects(client, "--agent", "ada", "--agent-type", "worker", "--project-id", "p1")
    assert str(place.file(client)) in said
    args = ("--agent", "ada", "--agent-type", "worker", "--project-id", "p1")
    entry = expected(client, place.program, *args)
    assert parsed(client, place.file(client)) == {CLIENTS[client].key: {"rookery": entry}}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_project_scope_writes_into_this_folder_only(place: Place, client: str) -> None:
    place.connects(client, "--scope", "project")
    written = parsed(client, place.folder / PROJECT[client])
    assert written == {CLIENTS[client].key: {"rookery": expected(client, place.program)}}
    assert not any(place.home.iterdir())


@pytest.mark.parametrize("client", CLIENTS)
def test_other_servers_and_odd_layout_stay_byte_for_byte(place: Place, client: str) -> None:
    file, before = place.write(client, others_of(client)), others_of(client)
    old = parsed(client, file)
    place.connects(client)
    assert is_only_inserted_into(before, file.read_text())
    old[CLIENTS[client].key]["rookery"] = expected(client, place.program)
    assert parsed(client, file) == old


@pytest.mark.parametrize("client", CLIENTS)
def test_a_second_run_changes_nothing(place: Place, client: str) -> None:
    file = place.write(client, others_of(client))
    place.run(client)
    before, written = file.read_bytes(), file.stat().st_mtime_ns
    assert "already" in place.connects(client)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (before, written)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_that_differs_is_left_and_ours_is_printed(place: Place, client: str) -> None:
    place.run(client, "--agent", "ada")
    assert '"grace"' in place.refuses(client, "--agent", "grace")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("text", ["{", '{"a": 1,,}', "{,}", '{"a": NaN}', "{} x", "'\udcff'", "[" * 9999])
def test_a_broken_file_is_left_with_a_clear_error(place: Place, client: str, text: str) -> None:
    file = place.write(client, text)
    said = place.refuses(client)
    assert said.startswith(f"Error: {file} is not ")
    assert "Nothing was changed" in said
    assert '"stdio"' in said


@pytest.mark.parametrize("client", [*WITH_COMMENTS, "claude"])
@pytest.mark.parametrize("servers", ["null", "[]", '"x"', '{}, "KEY": {}'])
def test_servers_that_nothing_can_be_added_to_are_left(place: Place, client: str, servers: str) -> None:
    place.write(client, f'{{"KEY": {servers}}}'.replace("KEY", CLIENTS[client].key))
    assert CLIENTS[client].key in place.refuses(client)


@pytest.mark.parametrize("text", ["mcp_servers = {}\n", "mcp_servers = 3\n", "[[mcp_servers]]\na = 1\n"])
def test_toml_servers_that_no_table_can_follow_are_left(place: Place, text: str) -> None:
    place.write("codex", text)
    assert "mcp_servers" in place.refuses("codex")


@pytest.mark.parametrize("client", WITH_COMMENTS)
def test_comments_and_trailing_commas_survive(place: Place, client: str) -> None:
    before = (
        '// top\n{\n\t"KEY": { // servers\n\t\t"a": {"x": "// no comment, \\" {"}, // last\n'
        '\t\t/* "b": {}, */\n\t},\n\t"other": [1, 2,], // end\n}\n// after'
    ).replace("KEY", CLIENTS[client].key)
    file = place.write(client, before)
    place.connects(client)
    ours = json.dumps(expected(client, place.program), indent="\t").replace("\n", "\n\t\t")
    assert file.read_text() == before.replace("*/\n", f'*/\n\t\t"rookery": {ours},\n')
    assert "already" in place.connects(client)


def test_a_file_of_comments_alone_keeps_them(place: Place) -> None:
    file = place.write("vscode", "// nothing yet")
    place.connects("vscode")
    assert file.read_text().startswith('// nothing yet\n{\n  "servers"')


def test_claude_reads_no_comments_so_they_are_an_error(place: Place) -> None:
    place.write("claude", "{} // mine")
    assert "not JSON" in place.refuses("claude")


def test_opencode_files_in_the_shape_of_version_2_keep_it(place: Place) -> None:
    file = place.write("opencode", '{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}}}')
    place.connects("opencode")
    entry = json.loads(file.read_text())["mcp"]["servers"]["rookery"]
    assert entry == {"type": "local", "command": [str(place.program), "stdio"]}
    assert "already" in place.connects("opencode")


def test_opencode_uses_the_file_that_is_there(place: Place) -> None:
    file = place.file("opencode").with_suffix(".jsonc")
    file.parent.mkdir(parents=True)
    file.write_text("{ /* mine */ }")
    place.connects("opencode")
    assert "rookery" in file.read_text()
    assert not place.file("opencode").exists()


def test_an_entry_in_a_second_file_counts() -> None:
    first, second, launch = Path("opencode.json"), Path("opencode.jsonc"), Launch("/bin/rookery")
    written = plan(CLIENTS["opencode"], launch, {second: None})
    found = plan(CLIENTS["opencode"], launch, {first: "{}", second: written.text})
    assert (written.happens, found.path, found.happens) == ("created", second, "unchanged")


@pytest.mark.parametrize("variable", VARIABLES[:4])
def test_a_client_that_was_moved_is_followed(place: Place, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    moved = place.home / "else where"
    monkeypatch.setenv(variable, str(moved))
    client = next(name for name in CLIENTS if CLIENTS[name].moved.startswith(variable))
    place.connects(client)
    assert not place.file(client).exists()
    assert (moved / CLIENTS[client].moved.partition("/")[2]).is_file()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_home_folder_is_named_only_where_it_is_not_the_default(
    place: Place, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.setenv("ROOKERY_HOME", str(place.home / ".rookery"))
    assert "ROOKERY_HOME" not in place.run(client, "--print").output
    monkeypatch.setenv("ROOKERY_HOME", "../Über uns")
    place.connects(client)
    env = {"ROOKERY_HOME": str(place.folder.parent / "Über uns")}
    entry = parsed(client, place.file(client))[CLIENTS[client].key]["rookery"]
    assert entry == expected(client, place.program, env=env)


@pytest.mark.parametrize("client", CLIENTS)
def test_unicode_quotes_and_spaces_in_paths_arrive(place: Place, client: str) -> None:
    program = place.program.parent / 'Ümläut "q" \\ 日本　語' / "rookery"
    program.parent.mkdir()
    program.touch(0o755)
    place.connects(client, "--command", str(program))
    entry = parsed(client, place.file(client))[CLIENTS[client].key]["rookery"]
    assert entry == expected(client, program)


@pytest.mark.parametrize("client", CLIENTS)
def test_print_shows_the_entry_and_its_file_and_writes_nothing(place: Place, client: str) -> None:
    file = place.write(client, "{ broken")
    result = place.run(client, "--print")
    assert str(file) in result.stderr
    assert (result.exit_code, file.read_text()) == (0, "{ broken")
    shown = tomllib.loads(result.stdout) if client == "codex" else json.loads(result.stdout)
    assert shown == {CLIENTS[client].key: {"rookery": expected(client, place.program)}}


def test_claude_is_also_told_its_own_command(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_HOME", "/srv/my rookery")
    line = place.run("claude", "--agent", "ada").output.splitlines()[-1]
    words = shlex.split(line[line.index("claude mcp") :])
    assert words[:7] == ["claude", "mcp", "add", "--scope", "user", "--env", "ROOKERY_HOME=/srv/my rookery"]
    assert words[7:] == [
        "--transport",
        "stdio",
        "rookery",
        "--",
        str(place.program),
        "stdio",
        "--agent",
        "ada",
    ]


def test_vscode_has_no_user_file_but_a_command(place: Place) -> None:
    assert "code --add-mcp" in place.refuses("vscode", "--scope", "user")


@pytest.mark.parametrize("client", CLIENTS)
def test_no_configuration_makes_a_session_the_owner(place: Place, client: str) -> None:
    assert place.run(client, "--as-owner").exit_code == 2
    for option in ("--agent", "--agent-type", "--project-id"):
        assert option in place.refuses(client, option, "--as-owner")
    for scope in ("user", "project"):
        shown = place.run(client, "--print", "--scope", scope, "--agent", "ada").output
        assert ("stdio" in shown, "as-owner" in shown) == (True, False)


@pytest.mark.parametrize("name", ["", "a\nb", "${HOME}", "{env:HOME}", "a\x7f"])
def test_names_that_would_not_arrive_are_refused(place: Place, name: str) -> None:
    assert repr(name) in place.refuses("gemini", "--agent", name)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_linked_file_stays_a_link_and_keeps_its_mode(place: Place, client: str) -> None:
    real = place.home / "dotfiles" / "config"
    real.parent.mkdir()
    real.write_text(others_of(client))
    real.chmod(0o640)
    place.file(client).parent.mkdir(parents=True, exist_ok=True)
    place.file(client).symlink_to(real)
    place.connects(client)
    assert place.file(client).is_symlink()
    assert "rookery" in real.read_text()
    assert real.stat().st_mode & 0o7777 == 0o640
    assert list(real.parent.iterdir()) == [real]


def test_a_link_to_a_file_that_is_missing_creates_that_file(place: Place) -> None:
    place.file("claude").symlink_to(place.home / "dotfiles" / "claude.json")
    place.connects("claude")
    assert place.file("claude").is_symlink()
    assert (place.home / "dotfiles" / "claude.json").is_file()


def test_a_fresh_file_of_the_user_is_private(place: Place) -> None:
    place.connects("gemini")
    assert place.file("gemini").stat().st_mode & 0o7777 == 0o600


def test_a_file_that_changed_since_it_was_read_is_not_replaced(place: Place) -> None:
    file = place.write("cursor", '{"new": 1}')
    assert not replace_file(Plan(file, "added", "{}", ""), '{"old": 1}', 0o600)
    assert file.read_text() == '{"new": 1}'
    assert list(file.parent.iterdir()) == [file]


@pytest.fixture
def unprivileged_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that its user may read only; root, who may write anywhere, becomes another user for it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        for variable in VARIABLES:
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("HOME", name)
        (Path(name) / "rookery").touch(0o755)
        (Path(name) / ".claude.json").write_text("{}")
        Path(name).chmod(0o555)
        was = os.geteuid()
        try:
            if was == 0:
                os.seteuid(65534)
            yield Path(name)
        finally:
            os.seteuid(was)
            Path(name).chmod(0o755)


@pytest.mark.parametrize("client", USER)
def test_a_folder_that_cannot_be_written_is_a_clear_error(unprivileged_home: Path, client: str) -> None:
    result = CliRunner().invoke(connect, [client, "--command", str(unprivileged_home / "rookery")])
    assert result.exit_code == 1
    assert f"cannot write {unprivileged_home}" in result.stderr
    assert '"stdio"' in result.stderr
    assert (unprivileged_home / ".claude.json").read_text() == "{}"


def test_a_file_in_the_place_of_the_folder_is_a_clear_error(place: Place) -> None:
    (place.home / ".codex").write_text("x")
    assert "cannot write" in place.refuses("codex")


@pytest.mark.parametrize("client", ["claude", "codex", "vscode"])
@pytest.mark.parametrize("before", [False, True])
def test_of_runs_beside_each_other_one_writes_and_the_file_is_whole(place: Place, client: str, before: bool) -> None:
    old = parsed(client, place.write(client, others_of(client))) if before else {}
    command = [sys.executable, "-c", RUN, client, "--command", str(place.program), "--agent"]
    running = [subprocess.Popen([*command, f"a{n}"], stderr=subprocess.DEVNULL) for n in range(4)]
    codes = [process.wait(60) for process in running]
    assert sorted(codes) == [0, 1, 1, 1]
    entry = expected(client, place.program, "--agent", f"a{codes.index(0)}")
    old.setdefault(CLIENTS[client].key, {})["rookery"] = entry
    assert parsed(client, place.file(client)) == old
    assert not [each for each in place.file(client).parent.iterdir() if each.suffix[1:].isdigit()]


def test_the_running_program_is_named_by_its_absolute_path(place: Place) -> None:
    place.program.write_text(f"#!{sys.executable}\n{RUN}\n")
    subprocess.run(["../bin/rookery", "codex"], check=True, cwd=place.folder)
    assert parsed("codex", place.file("codex"))["mcp_servers"]["rookery"]["command"] == str(place.program)


def test_the_command_loads_nothing_heavy() -> None:
    code = f"import sys, click; sys.path.insert(0, {SOURCE!r}); import rookery.cli.connect; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert "rookery.cli.connect" in loaded
    assert not loaded & {"pydantic", "sqlalchemy", "mcp", "rich", "asyncio", "tomllib", "dataclasses"}
