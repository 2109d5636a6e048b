"""Memory files at the stdio doors: told at the start of every session of their profile, and of no other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import Place
from tests.server.processes import Client

FIRST, SECOND = "marmalade in the cellar", "honey on the roof"


def told(place: Place, *flags: str, direct: bool, modern: bool) -> str:
    """The instructions of a new session with these flags."""
    client = place.client(*flags, direct=direct)
    answer = client.be_modern().request("server/discover") if modern else client.initialize()
    client.end()
    return answer["result"]["instructions"]


def worker(place: Place, *flags: str, direct: bool = False) -> Client:
    return place.session("--agent-type", "worker", *flags, direct=direct)


def write(session: Client, content: str, scope: str = "project") -> str:
    done = session.call("update_memory", scope=scope, filename="notes.md", content=content)
    assert "error" not in done, done
    return done["path"]


@pytest.fixture(scope="module")
def kept(plugin: Path) -> Iterator[Place]:
    """A home with a key and a server, where workers of the project shop have written a file and a judge none."""
    place = Place(plugin)
    try:
        key = place.home / "rookery.key"
        key.write_bytes(bytes(range(32)))
        key.chmod(0o600)
        place.env["ROOKERY_KEY_FILE"] = str(key)
        place.server()
        place.session("--as-owner").call("create_project", slug="shop")
        path = write(worker(place, "--project-slug", "shop"), FIRST)
        assert FIRST.encode() not in (place.home / path).read_bytes()
        yield place
    finally:
        place.close()


def test_a_profile_is_told_its_files_and_nobody_else_is(kept: Place, direct: bool) -> None:
    flags = ("--agent-type", "worker", "--project-slug", "shop")
    for modern in (False, True):
        assert FIRST in told(kept, *flags, direct=direct, modern=modern)
    for others in (
        ("--agent-type", "judge", "--project-slug", "shop"),
        ("--agent-type", "worker"),
        ("--project-slug", "shop"),
        ("--as-owner", "--project-slug", "shop"),
    ):
        assert FIRST not in told(kept, *others, direct=direct, modern=False), others


def test_what_one_door_wrote_the_other_tells(place: Place) -> None:
    place.server()
    flags = ("--agent-type", "worker")
    write(worker(place, direct=True), FIRST)
    assert FIRST in told(place, *flags, direct=False, modern=False)
    write(worker(place), SECOND, scope="global")
    both = told(place, *flags, direct=True, modern=False)
    assert FIRST in both
    assert SECOND in both


def test_a_session_that_asks_again_is_told_what_is_there_now(place: Place, direct: bool) -> None:
    place.server()
    client = place.client("--agent-type", "worker", direct=direct).be_modern()
    assert FIRST not in client.request("server/discover")["result"]["instructions"]
    write(worker(place), FIRST)
    assert FIRST in client.request("server/discover")["result"]["instructions"]


def test_a_file_that_was_lost_is_there_again_after_a_start(place: Place) -> None:
    server = place.server()
    file = place.home / write(worker(place), FIRST)
    server.kill()
    file.unlink()
    place.server()
    assert file.read_text(encoding="utf-8") == FIRST


def test_the_path_of_a_file_cannot_leave_its_folder(place: Place, direct: bool) -> None:
    place.server()
    done = worker(place, direct=direct).call("update_memory", scope="project", filename="../x.md", content=FIRST)
    assert done["error"]["code"] == "INVALID_PARAMS"
    assert not list(place.home.rglob("x.md"))
