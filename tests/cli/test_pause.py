"""The kill switch at the command line."""

from tests.cli.terminal import Terminal


def test_what_cannot_be_paused_ends_in_one_sentence(terminal_on: Terminal) -> None:
    terminal = terminal_on
    for command in ("pause", "resume"):
        assert "there is no project no" in terminal.fails(command, "--project", "no")
        assert "there is no agent eve" in terminal.fails(command, "--agent", "eve")
        assert "not both" in terminal.fails(command, "--agent", "default", "--project", "default")
    assert "--list shows everything" in terminal.fails("pause", "--list", "--agent", "default", code=2)
    assert "nothing is paused" in terminal.ok("pause", "--list")
    assert terminal.json("pause", "--list", "--json") == []


def test_pauses_are_made_listed_and_taken_back_one_by_one(terminal_on: Terminal) -> None:
    terminal = terminal_on
    said = terminal.ok("pause", "--reason", "it deletes branches")
    assert said.startswith("everything is paused\n")
    assert "it deletes branches" in said
    assert "everything is paused already" in terminal.ok("pause", "--reason", "another")
    made = terminal.json("pause", "--agent", "default", "--json")
    assert (made["changed"], [each["scope"] for each in made["pauses"]]) == (True, ["all", "agent"])
    [everything, agent] = terminal.json("pause", "--list", "--json")
    assert (everything["target"], everything["reason"], everything["by"]) == (None, "it deletes branches", "owner")
    assert (agent["target"], agent["reason"]) == ("default", "")
    left = terminal.ok("resume")
    assert left.startswith("everything is resumed\n")
    assert "default" in left
    assert "everything is not paused" in terminal.ok("resume")
    assert "nothing is paused" in terminal.ok("resume", "--agent", "default")


def test_an_agent_at_the_command_line_is_refused_while_it_is_paused(terminal_on: Terminal) -> None:
    terminal_on.ok("pause", "--project", "default", "--reason", "stop")
    why = "the project default was paused by owner: stop"
    refused = terminal_on.refusal("save_memory", '{"key": "k", "content": "c"}')
    assert (refused["code"], refused["message"]) == ("PERMISSION_DENIED", why)
    assert why in terminal_on.ok("explain", "save_memory")
    terminal_on.ok("resume", "--project", "default")
    terminal_on.ok("call", "save_memory", '{"key": "k", "content": "c"}')


def test_the_doctor_notes_what_is_paused(terminal_on: Terminal) -> None:
    def pauses() -> dict[str, str]:
        found = terminal_on.json("doctor", "--json")
        return next(each for each in found if each["check"] == "pauses")

    assert terminal_on.ok("resume")
    assert (pauses()["state"], pauses()["sentence"]) == ("ok", "No agent is paused.")
    terminal_on.ok("pause", "--agent", "default", "--reason", "too many mails")
    assert pauses()["state"] == "note"
    assert pauses()["sentence"] == "The agent default was paused by owner: too many mails."
    assert "rookery resume" in pauses()["mend"]
