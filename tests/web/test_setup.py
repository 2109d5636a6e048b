"""The first run: from nothing to the first agent that has connected."""

import re
from pathlib import Path

import pytest

from rookery.engine.first_run import give_folder, look_at_repository, setup_state
from rookery.engine.repository_look import look_at
from rookery.identity.sightings import note_sighting
from rookery.web.setup_view import slug_of
from tests.domains.tracker.desk import git
from tests.platform_fixtures import Fleet
from tests.server.processes import Client, environment
from tests.web.guest import Guest, words_of
from tests.web.running import Runners
from tests.web.site import Viewer

CLIENTS = ("claude", "codex", "gemini", "opencode", "cursor", "vscode")


def repository(folder: Path, **files: str) -> Path:
    """A repository with one commit that has these files."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for name, text in {"README": "A shop.\n", **files}.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


async def test_whoever_is_not_signed_in_sets_nothing_up(guest: Guest) -> None:
    assert (await guest.get("/setup")).headers["location"].startswith("/sign-in")
    assert (await guest.post("/setup/project", {"name": "x", "path": "/srv"})).status_code == 303


async def test_a_viewer_sees_how_far_it_is_and_changes_nothing(owner: Guest) -> None:
    await owner.post("/people/add", {"name": "vera", "role": "viewer"})
    vera = owner.signed_in("vera")
    words = await vera.words("/setup")
    assert "The owner of this installation sets it up" in words
    assert "/setup/project" not in (await vera.get("/setup")).text
    assert (await vera.post("/setup/project", {"name": "shop", "path": "/srv/shop"})).status_code == 403
    assert (await vera.post("/setup/token", {"client": "claude", "agent": "default"})).status_code == 403
    assert (await vera.post("/setup/gates", {"use-0": "yes", "command-0": "make"})).status_code == 403
    state = (await owner.fleet.platform.calls.run(owner.fleet.owner, setup_state, {})).structured
    assert [project["path"] for project in state["projects"]] == [None]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "shop"}, "the project has no folder"),
        ({"name": "!!!", "path": "/srv/shop"}, "the project has no name"),
        ({"slug": "default", "path": "srv/shop"}, "no absolute path"),
    ],
)
async def test_what_is_missing_is_said(owner: Guest, fields: dict[str, str], says: str) -> None:
    answer = await owner.post("/setup/project", fields)
    assert answer.status_code == 400
    assert says in words_of(answer.text)


async def test_the_default_project_is_given_a_folder(owner: Guest, fleet: Fleet, tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    await owner.post("/setup/project", {"slug": "default", "path": f"{folder}/"})
    state = (await fleet.platform.calls.run(fleet.owner, setup_state, {})).structured
    assert [project["path"] for project in state["projects"]] == [str(folder)]
    assert fleet.actor(project="default").project is not None
    with pytest.raises(Exception, match="no project"):
        await fleet.platform.calls.run(fleet.owner, give_folder, {"project": "nothing", "path": "/srv"})


def test_a_folder_that_is_no_repository_is_told_with_what_helps(tmp_path: Path) -> None:
    missing = look_at(str(tmp_path / "nothing"))
    assert "there is no folder" in missing.problem
    plain = tmp_path / "plain"
    plain.mkdir()
    assert "not a git repository" in look_at(str(plain)).problem
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert "no commit yet" in look_at(str(empty)).problem
    whole = repository(tmp_path / "whole")
    (whole / "part").mkdir()
    assert look_at(str(whole / "part")).remedy == f"give {whole}"
    found = look_at(str(whole))
    assert (found.problem, found.branch, found.commits) == ("", "main", 1)


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"pyproject__toml": "[tool.pytest.ini_options]\n[tool.ruff]\n"}, ["python -m pytest -q", "ruff check ."]),
        ({"package__json": '{"scripts": {"test": "vitest", "lint": "eslint ."}}'}, ["npm run test", "npm run lint"]),
        ({"package__json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'}, []),
        ({"package__json": "[]"}, []),
        ({"Makefile": "test: build\n\tpytest\ncheck:\n\tlint\nlint := x\n"}, ["make test", "make check"]),
        ({"Cargo__toml": "[package]\n"}, ["cargo test", "cargo clippy -- -D warnings"]),
        ({"go__mod": "module shop\n"}, ["go test ./...", "go vet ./..."]),
        ({"pyproject__toml": "not toml ["}, []),
    ],
)
def test_gates_are_suggested_by_what_the_repository_has(
    tmp_path: Path, files: dict[str, str], commands: list[str]
) -> None:
    assert [gate.command for gate in look_at(str(repository(tmp_path / "shop", **files))).gates] == commands


async def test_an_agent_cannot_look_at_folders_of_the_server(fleet: Fleet) -> None:
    with pytest.raises(Exception, match="look_at_repository"):
        await fleet.platform.calls.run(fleet.actor(agent="default"), look_at_repository, {"path": "/srv"})


async def test_the_chosen_gates_are_kept_and_shown_again(owner: Guest, fleet: Fleet, tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop", Makefile="test:\n\ttrue\n")
    await owner.post("/setup/project", {"name": "My Shop", "path": str(folder)})
    page = (await owner.get("/setup?project=my-shop&step=gates")).text
    assert 'value="make test"' in page
    kept = {"use-0": "yes", "command-0": "make test", "label-0": "tests", "required-0": "yes", "command-1": "not this"}
    answer = await owner.post("/setup/gates?project=my-shop", kept)
    assert answer.headers["location"] == "/setup?project=my-shop&step=agent"
    told = await fleet.call(fleet.actor(as_owner=True, project="my-shop"), "configure_project")
    assert told.settings["gates"] == [{"command": "make test", "label": "tests", "required": True}]
    assert 'value="make test"' in (await owner.get("/setup?project=my-shop&step=gates")).text


@pytest.mark.parametrize("client", CLIENTS)
async def test_every_client_is_told_its_exact_words(owner: Guest, client: str) -> None:
    words = await owner.words(f"/setup?step=agent&client={client}")
    assert f"connect {client} --agent default" in words
    assert "stdio" in words
    assert "http://127.0.0.1/mcp" in words


async def test_a_token_is_made_on_the_spot_and_shown_once(owner: Guest, fleet: Fleet) -> None:
    page = await owner.post("/setup/token", {"client": "claude", "agent": "default"})
    found = re.search(r"Bearer (rk_\w+)", words_of(page.text))
    assert found is not None
    assert "claude mcp add" in words_of(page.text)
    assert found[1] not in (await owner.get("/setup?step=agent")).text
    tokens = (await fleet.call(fleet.owner, "list_tokens")).tokens
    assert [(token.holder, token.holder_kind) for token in tokens] == [(fleet.actor(agent="default").agent, "agent")]
    assert (await owner.post("/setup/token", {"client": "netscape"})).status_code == 400


def ticked(page: str) -> bool:
    """Whether the step of the first agent is done."""
    found = re.search(r"<li([^>]*)>(?:(?!<li).)*First agent", page, re.S)
    assert found is not None
    return "done" in found[1]


async def test_an_agent_that_has_run_has_not_connected(owner: Guest, fleet: Fleet) -> None:
    def seen(door: str) -> None:
        agent = fleet.actor(agent="default").agent
        assert agent is not None
        fleet.platform.database.direct(lambda tx: note_sighting(tx, "default", agent, door), write=True)

    Runners(fleet).done()
    assert not ticked((await owner.get("/setup")).text)
    seen("agent")
    page = (await owner.get("/setup")).text
    assert not ticked(page)
    assert "No agent has connected yet." in words_of(page)
    for door in ("stdio", "http"):
        seen(door)
        page = (await owner.get("/setup")).text
        assert ticked(page)
        assert "default has connected." in words_of(page)


@pytest.mark.parametrize(("name", "slug"), [("My Shop", "my-shop"), ("  ", ""), ("Über!", "ber"), ("a.b_c", "a.b_c")])
def test_a_slug_is_made_of_a_name(name: str, slug: str) -> None:
    assert slug_of(name) == slug


def test_from_the_first_sign_in_to_the_first_agent_that_has_connected(viewer: Viewer, tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop", Makefile="test:\n\ttrue\n")
    page = viewer.open("/")
    page.get_by_role("button", name="Begin").click()
    page.get_by_label("Name", exact=True).fill("Shop")
    page.get_by_label("Folder of its repository").fill(str(tmp_path))
    viewer.check()
    page.get_by_role("button", name="Go on").press("Enter")
    page.get_by_role("alert").get_by_text("is not a git repository").wait_for()
    viewer.check()
    page.get_by_label("Folder").fill(str(folder))
    page.get_by_role("button", name="Look again").click()
    page.get_by_text("Agents can work here.").wait_for()
    viewer.check()
    page.get_by_role("button", name="Go on to the gates").click()
    assert page.get_by_label("Command of gate 1").input_value() == "make test"
    viewer.check()
    page.get_by_role("button", name="Keep these").click()
    page.get_by_role("heading", name="Connect an agent").wait_for()
    assert "connect claude --agent default --project-id shop" in page.locator("#command").inner_text()
    page.get_by_text("No agent has connected yet.").wait_for()
    viewer.check()
    home = viewer.site.home
    client = Client(home, environment(home, None), "--agent", "default", "--project-id", "shop")
    try:
        client.initialize()
        page.get_by_text("default has connected.").wait_for()
        viewer.check()
        page.get_by_role("button", name="Go to Home").click()
        page.get_by_role("heading", name="Home").wait_for()
        assert page.get_by_text("Set up your fleet").count() == 0
    finally:
        client.close()
