"""The commands with which the owner manages agents, profiles, bundles, grants, tokens and projects."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


def names(terminal: Terminal, agent: str) -> set[str]:
    return {tool["name"] for tool in terminal.json("tools", "--json", "--agent", agent)}


@pytest.mark.parametrize("group", ["agents", "profiles", "bundles", "grants", "token", "projects", "issues"])
def test_a_group_without_a_command_lists(terminal: Terminal, group: str) -> None:
    assert terminal.ok(group) == terminal.ok(group, "list") != ""
    assert terminal.json(group, "--json") == terminal.json(group, "list", "--json")


def test_an_agent_is_created_and_its_name_is_taken_from_then_on(terminal: Terminal) -> None:
    made = terminal.json("agents", "create", "ada", "--json")
    assert made["permissions"] is None
    assert "exists already" in terminal.fails("agents", "create", "Ada")
    assert "ada" in terminal.ok("agents")


def test_an_agent_gets_exactly_the_tools_of_its_list(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "ada", "--permissions", "ping, get_server_info")
    assert names(terminal, "ada") == {"ping", "get_server_info"}
    terminal.ok("agents", "set", "ada", "--permissions", "corvid_ping")
    assert names(terminal, "ada") == {"ping"}
    terminal.ok("agents", "set", "ada", "--permissions", "none")
    assert names(terminal, "ada") == set()
    terminal.ok("agents", "set", "ada", "--permissions", "default")
    assert names(terminal, "ada") == names(terminal, "default")


def test_the_list_of_agents_tells_no_tools_from_the_default_set(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "mute", "--permissions", "none")
    rows = {line.split()[0]: line.split()[2] for line in terminal.ok("agents").splitlines()}
    assert (rows["mute"], rows["default"]) == ("none", "default")


def test_an_empty_list_of_permissions_is_refused_rather_than_guessed(terminal: Terminal) -> None:
    assert "write none" in terminal.fails("agents", "create", "ada", "--permissions", "", code=2)
    assert "write none" in terminal.fails("agents", "set", "default", "--permissions", "ping,", code=2)


def test_permissions_with_an_unknown_tool_are_refused(terminal: Terminal) -> None:
    assert "conjure" in terminal.fails("agents", "create", "ada", "--permissions", "conjure")


def test_an_agents_mode_trust_and_networking_are_set(terminal: Terminal) -> None:
    changes = ["--mode", "ask", "--trust", "2", "--restrict-networking"]
    changed = terminal.json("agents", "set", "default", *changes, "--json")
    assert (changed["mode"], changed["trust"], changed["restrict_networking"]) == ("ask", 2, True)
    changed = terminal.json("agents", "set", "default", "--no-restrict-networking", "--json")
    assert (changed["mode"], changed["restrict_networking"]) == ("ask", False)


@pytest.mark.parametrize("command", [["agents", "set", "default"], ["profiles", "set", "judge"]])
def test_a_change_of_nothing_is_refused(terminal: Terminal, command: list[str]) -> None:
    assert "nothing to change" in terminal.fails(*command, code=2)


def test_a_profile_is_narrowed_and_widened_again(terminal: Terminal) -> None:
    def judged() -> set[str]:
        return {tool["name"] for tool in terminal.json("tools", "--json", "--agent-type", "judge")}

    before = judged()
    assert terminal.json("profiles", "set", "judge", "--allowed", "ping", "--json")["allowed"] == ["ping"]
    assert judged() == {"ping"}
    terminal.ok("profiles", "set", "judge", "--disallowed", "ping")
    assert judged() == set()
    terminal.ok("profiles", "set", "judge", "--allowed", "default", "--disallowed", "none")
    assert judged() == before


def test_an_unknown_profile_is_refused_with_the_known_ones(terminal: Terminal) -> None:
    assert "known: worker" in terminal.fails("profiles", "set", "wizard", "--allowed", "ping")


def test_a_bundle_is_saved_given_taken_and_deleted(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "ada", "--permissions", "none")
    terminal.ok("bundles", "save", "basics", "--tools", "ping", "--prompt", "Ping first.")
    given = terminal.json("bundles", "assign", "basics", "--agent", "ada", "--json")
    assert len(given["bundles"]) == 1
    assert names(terminal, "ada") == {"ping"}
    terminal.ok("bundles", "assign", "basics", "--agent", "ada", "--remove")
    assert names(terminal, "ada") == set()
    terminal.ok("bundles", "assign", "basics", "--project", "default")
    terminal.ok("bundles", "delete", "basics")
    assert "basics" not in terminal.ok("bundles")


def test_a_bundle_is_given_to_one_holder_at_a_time(terminal: Terminal) -> None:
    assert "either an agent or a project" in terminal.fails("bundles", "assign", "preset-devops")
    assert "presets cannot be deleted" in terminal.fails("bundles", "delete", "preset-devops")


def test_a_grant_adds_one_tool_until_it_is_revoked(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "ada", "--permissions", "none")
    made = terminal.json("grants", "add", "ada", "ping", "--reason", "to try", "--expires", "12h", "--json")
    ends = datetime.fromisoformat(made["expires_at"])
    assert timedelta(hours=11) < ends - datetime.now(UTC) <= timedelta(hours=12)
    assert names(terminal, "ada") == {"ping"}
    terminal.ok("grants", "revoke", made["id"])
    assert names(terminal, "ada") == set()
    assert "no live grant" in terminal.fails("grants", "revoke", made["id"])


@pytest.mark.parametrize("when", ["soon", "2030-01-31T12:00:00", ""])
def test_a_time_that_is_none_or_has_no_zone_is_refused(terminal: Terminal, when: str) -> None:
    assert "Invalid value for '--expires'" in terminal.fails(
        "grants", "add", "default", "ping", "--expires", when, code=2
    )


def test_a_grant_in_the_past_is_refused(terminal: Terminal) -> None:
    told = terminal.fails("grants", "add", "default", "ping", "--expires", "2020-01-01T00:00:00Z")
    assert "already be over" in told


def test_a_tokens_secret_is_shown_once_and_alone(terminal: Terminal) -> None:
    made = terminal.run("token", "create", "laptop", "--agent", "default", "--scopes", "tool:ping")
    assert made.exit_code == 0
    secret = made.stdout.strip()
    assert secret.startswith("rk_")
    assert "not shown again" in made.stderr
    assert secret not in made.stderr
    assert secret not in terminal.ok("token") + terminal.ok("token", "--json") + terminal.ok("audit", "list")
    assert secret.encode() not in terminal.database.read_bytes()


def test_no_list_of_tokens_has_a_field_for_the_secret(terminal: Terminal) -> None:
    assert "secret" in terminal.json("token", "create", "laptop", "--json")
    (listed,) = terminal.json("token", "list", "--json")
    assert "secret" not in listed
    assert listed["scopes"] == ["*"]


def test_a_token_is_revoked_once(terminal: Terminal) -> None:
    made = terminal.json("token", "create", "laptop", "--json")
    terminal.ok("token", "revoke", made["id"])
    assert terminal.json("token", "--json")[0]["revoked"] is True
    assert "no live token" in terminal.fails("token", "revoke", made["id"])


def test_a_project_is_created(terminal: Terminal) -> None:
    terminal.ok("projects", "create", "nest", "--name", "The nest", "--path", "/srv/nest")
    (nest,) = (project for project in terminal.json("projects", "--json") if project["slug"] == "nest")
    assert (nest["name"], nest["path"]) == ("The nest", "/srv/nest")
    assert terminal.json("tools", "--json", "--project-id", nest["id"]) != []
    assert "there is no project hive" in terminal.fails("tools", "--project-id", "hive")


def test_the_folder_of_a_project_is_counted_from_where_the_command_is_given(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert terminal.json("projects", "create", "here", "--path", ".", "--json")["path"] == str(tmp_path)
    assert terminal.json("projects", "create", "below", "--path", "nest/", "--json")["path"] == str(tmp_path / "nest")
    assert "is no absolute path" in terminal.fails("projects", "create", "nowhere", "--path", "")


def test_a_project_is_given_another_folder(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    terminal.ok("projects", "create", "nest", "--path", "/srv/nest")
    assert terminal.json("projects", "folder", "nest", "moved", "--json")["path"] == str(tmp_path / "moved")
    assert "there is no project hive" in terminal.fails("projects", "folder", "hive", "/srv/hive")


def test_a_project_is_closed_to_all_agents_but_some_and_opened_again(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "ada")
    terminal.ok("projects", "create", "nest")
    assert terminal.json("projects", "members", "nest", "ada", "--json")["members"] == ["ada"]
    assert "there is no project nest" in terminal.fails("tools", "--project-slug", "nest")
    assert terminal.json("tools", "--json", "--agent", "ada", "--project-slug", "nest") != []
    assert terminal.json("tools", "--json", "--as-owner", "--project-slug", "nest") != []
    assert "none" in terminal.ok("projects", "members", "nest", "--nobody")
    assert "there is no project nest" in terminal.fails("tools", "--agent", "ada", "--project-slug", "nest")
    assert "everyone" in terminal.ok("projects", "members", "nest", "--everyone")
    assert terminal.json("tools", "--json", "--project-slug", "nest") != []


def test_the_list_of_projects_tells_everyone_from_nobody(terminal: Terminal) -> None:
    terminal.ok("projects", "create", "nest")
    terminal.ok("projects", "members", "nest", "--nobody")
    rows = {line.split()[0]: line.split()[-1] for line in terminal.ok("projects").splitlines()}
    assert (rows["nest"], rows["default"]) == ("none", "everyone")


@pytest.mark.parametrize("words", [[], ["--everyone", "--nobody"], ["default", "--everyone"], ["default", "--nobody"]])
def test_who_may_enter_a_project_is_said_in_one_way(terminal: Terminal, words: list[str]) -> None:
    assert "--everyone or --nobody" in terminal.fails("projects", "members", "default", *words, code=2)
    assert terminal.json("projects", "--json")[0]["members"] is None


@pytest.mark.parametrize("agent", ["", "nobody"])
def test_an_agent_that_is_not_there_cannot_be_a_member(terminal: Terminal, agent: str) -> None:
    terminal.fails("projects", "members", "default", "default", agent)
    assert terminal.json("projects", "--json")[0]["members"] is None


def test_names_that_would_steer_a_terminal_are_shown_harmless(terminal: Terminal) -> None:
    terminal.ok("grants", "add", "default", "ping", "--reason", "\x1b[2Jgone")
    assert "?[2Jgone" in terminal.ok("grants")


def test_managing_works_on_both_databases(terminal_on: Terminal) -> None:
    terminal_on.ok("agents", "create", "ada", "--permissions", "ping")
    terminal_on.ok("grants", "add", "ada", "get_server_info")
    assert names(terminal_on, "ada") == {"ping", "get_server_info"}
