"""Wrong flags end the start with one sentence, and the right ones bind the session, in both modes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rookery.relay import socket_path
from tests.server.conftest import Place
from tests.server.processes import error_code

PROFILES = ("worker", "researcher", "judge", "scanner", "architect", "planner", "intake")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scope")
    for name, text in {
        "good": '["corvid_ping", "save_note"]',
        "empty": "[]",
        "broken": '["ping"',
        "number": "5",
        "mixed": '["ping", 5]',
        "object": '{"ping": true}',
        "unknown": '["ping", "fly_away"]',
        "binary": "\x00\x01",
    }.items():
        (folder / name).write_text(text)
    (folder / "latin").write_bytes(b'["p\xefng"]')
    (folder / "big").write_text("[" + '"ping",' * 1_000_000 + '"ping"]')
    os.mkfifo(folder / "pipe")
    return folder


WRONG = [
    (["--agent", "nobody"], ["nobody"]),
    (["--agent-type", "wizard"], ["wizard", *PROFILES]),
    (["--project-id", "prj-none"], ["prj-none"]),
    (["--project-slug", "nowhere"], ["nowhere"]),
    (["--depth", "0"], ["--depth", "0"]),
    (["--depth", "-1"], ["--depth"]),
    (["--depth", "two"], ["--depth", "two"]),
    (["--depth", "²"], ["--depth"]),
    (["--depth", "9" * 5000], ["--depth"]),
    (["--source", "moon"], ["--source", "moon", "stdio"]),
    (["--session-id", "x" * 300], ["--session-id"]),
    (["--session-id", "a\nb"], ["--session-id"]),
    (["--tool-scope-file", "{files}/none"], ["none"]),
    (["--tool-scope-file", "{files}"], ["scope file"]),
    *((["--tool-scope-file", f"{{files}}/{name}"], [name]) for name in ("broken", "number", "mixed", "object")),
    *((["--tool-scope-file", f"{{files}}/{name}"], [name]) for name in ("binary", "latin", "big", "pipe")),
    (["--tool-scope-file", "/dev/zero"], ["/dev/zero"]),
    (["--tool-scope-file", "{files}/unknown"], ["fly_away"]),
    (["--db", "{files}/broken"], ["broken"]),
    (["--db", "{files}"], ["scope"]),
    (["--db", "mysql://nowhere/x"], ["mysql"]),
    (["--db", "postgresql://nobody@127.0.0.1:1/x"], ["127.0.0.1"]),
    (["--db", "postgresql://:badport/x"], ["--db"]),
]


# A start in direct mode takes a second, so only one of each kind is always tried there.
ALWAYS = (
    "--agent nobody",
    "--agent-type wizard",
    "--depth two",
    "--source moon",
    "/unknown",
    "/pipe",
    "--db {files}/broken",
)


def modes(flags: list[str], named: list[str]) -> list[Any]:
    said = " ".join(flags)[:40]
    marks = [] if said.endswith(ALWAYS) else [pytest.mark.slow]
    return [
        pytest.param(False, flags, named, id=f"relay {said}"),
        pytest.param(True, flags, named, id=f"direct {said}", marks=marks),
    ]


@pytest.mark.parametrize(("direct", "flags", "named"), [case for wrong in WRONG for case in modes(*wrong)])
def test_a_wrong_flag_ends_the_start_with_one_sentence(
    shared: Place, files: Path, direct: bool, flags: list[str], named: list[str]
) -> None:
    code, answers, stderr = shared.client(*(flag.format(files=files) for flag in flags), direct=direct).end()
    assert (code, answers) == (2, [])
    sentences = [line for line in stderr.splitlines() if "serving in this process instead" not in line]
    assert len(sentences) == 1, stderr
    assert sentences[0].startswith("rookery stdio: ")
    assert all(name in sentences[0] for name in named)
    assert shared.session().call("ping")["status"] == "pong", "the server has not suffered"


def test_a_relative_scope_file_is_found_where_the_client_is(shared: Place, direct: bool) -> None:
    (shared.home / "here.json").write_text('["ping"]')
    assert shared.session("--tool-scope-file", "here.json", direct=direct).tool_names() == {"ping"}


def test_a_scope_file_comes_before_the_agent_type(shared: Place, files: Path, direct: bool) -> None:
    scope = ["--tool-scope-file", str(files / "good")]
    assert shared.session(*scope, direct=direct).tool_names() == {"ping", "save_note"}
    assert shared.session(*scope, "--agent-type", "worker", direct=direct).tool_names() == {"ping", "save_note"}
    judge = shared.session(*scope, "--agent-type", "judge", direct=direct)
    assert judge.tool_names() == {"ping"}
    assert error_code(judge.call("save_note", text="x")) == "PERMISSION_DENIED"


def test_an_empty_scope_file_means_no_tools(shared: Place, files: Path, direct: bool) -> None:
    client = shared.session("--tool-scope-file", str(files / "empty"), direct=direct)
    assert client.tool_names() == set()
    assert error_code(client.call("ping")) == "PERMISSION_DENIED"


def test_a_session_knows_where_its_client_was_started(shared: Place, direct: bool) -> None:
    home = os.path.realpath(shared.home)
    assert shared.session(direct=direct).call("locate_client") == {"cwd": home, "worktree": None}
    for path, absolute in (("trees/../tree", f"{home}/tree"), ("/srv/tree/", "/srv/tree"), (".", home)):
        bound = shared.session("--worktree-path", path, direct=direct)
        assert bound.call("locate_client") == {"cwd": home, "worktree": absolute}


def test_a_session_that_lacks_a_critical_tool_of_its_profile_starts_with_a_warning(
    shared: Place, files: Path, direct: bool
) -> None:
    lacking = "intake cannot do its work without locate_client: the scope file of this session leaves out"

    def warned() -> int:
        return sum(process.errors.count(lacking) for process in (*shared.servers, *shared.clients))

    before = warned()
    scope = ["--tool-scope-file", str(files / "good")]
    shared.session("--agent-type", "worker", *scope, direct=direct)
    shared.session("--agent-type", "intake", direct=direct)
    assert warned() == before
    client = shared.session("--agent-type", "intake", *scope, direct=direct)
    assert client.tool_names() == {"ping"}
    assert warned() == before + 1
    assert lacking in (client if direct else shared.servers[-1]).errors


def test_all_tools_are_the_owners_alone(shared: Place, direct: bool) -> None:
    owner = shared.session("--as-owner", direct=direct).tool_names()
    default = shared.session(direct=direct).tool_names()
    assert "create_agent" in owner
    assert default < owner
    assert shared.session("--source", "web", direct=direct).tool_names() == default


def test_a_relative_database_is_found_where_the_client_is(place: Place) -> None:
    place.server()
    other = place.session("--db", "other.db")
    assert other.call("save_note", text="elsewhere") == {"done": "elsewhere"}
    assert "another database" in other.errors
    assert (place.home / "other.db").exists()
    assert place.session().call("list_notes") == {"texts": []}


def test_the_servers_own_database_may_be_named(place: Place) -> None:
    place.server()
    os.symlink(place.home / "rookery.db", place.home / "link.db")
    for db in ("rookery.db", str(place.home / "rookery.db"), f"sqlite:///{place.home}/rookery.db", "link.db"):
        client = place.session("--db", db)
        assert client.call("ping")["status"] == "pong"
        assert client.memory_mb() < 25, "the relay serves it"


def test_postgres_may_be_named_as_well(place: Place, postgres_url: str) -> None:
    place.env["ROOKERY_DATABASE"] = postgres_url
    place.server()
    assert place.session("--db", postgres_url).memory_mb() < 25
    other = place.session("--db", "mine.db")
    assert other.call("save_note", text="sqlite") == {"done": "sqlite"}
    assert place.session().call("list_notes") == {"texts": []}


def test_the_socket_is_its_owners_alone(shared: Place) -> None:
    assert os.stat(socket_path(str(shared.home))).st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_another_user_is_refused_even_where_the_file_lets_him_in(place: Place) -> None:
    place.server()
    path = socket_path(str(place.home))
    place.home.chmod(0o755)
    os.chmod(path, 0o666)
    script = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
        "s.settimeout(10); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode()); print(s.makefile().read())"
    )
    hello = '{"rookery":1,"version":"0.1.0","cwd":"/","flags":{"as_owner":true}}\n'
    call = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run(
        [sys.executable, "-c", script, path, hello + call], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout.splitlines()[0].startswith('{"ok":false,"reason":"this server belongs to another user"')
    assert "jsonrpc" not in done.stdout
    assert place.session().call("ping")["status"] == "pong"
