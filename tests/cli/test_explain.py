"""`rookery explain`: every layer has its say."""

from rookery.core.decide import LAYERS
from tests.cli.terminal import Terminal


def test_every_layer_is_shown_in_order(terminal: Terminal) -> None:
    lines = terminal.ok("explain", "ping").splitlines()
    assert lines[0] == "ping for the agent default"
    assert [line.split()[0] for line in lines[2 : 2 + len(LAYERS)]] == [name for name, _ in LAYERS]
    assert lines[-1] == "decision: allow: every layer agrees"


def test_a_refusal_names_the_layer_the_reason_and_what_to_do(terminal: Terminal) -> None:
    told = terminal.json("explain", "create_agent", "--json")
    assert (told["tool"], told["outcome"], told["layer"]) == ("create_agent", "deny", "principal")
    assert told["reason"]
    assert told["hint"]
    assert [verdict["layer"] for verdict in told["layers"]] == [name for name, _ in LAYERS]
    shown = terminal.ok("explain", "create_agent")
    assert "decision: deny by principal" in shown
    assert f"hint: {told['hint']}" in shown


def test_the_layers_after_the_first_refusal_are_shown_as_well(terminal: Terminal) -> None:
    told = terminal.json("explain", "create_agent", "--json")
    denied = [verdict["layer"] for verdict in told["layers"] if verdict["outcome"] == "deny"]
    assert denied == ["principal", "role"]


def test_the_seeds_spelling_of_a_name_is_explained(terminal: Terminal) -> None:
    assert terminal.json("explain", "corvid_ping", "--json")["tool"] == "ping"


def test_any_agent_can_be_asked_about(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "mute", "--permissions", "none")
    told = terminal.json("explain", "ping", "--agent", "mute", "--json")
    assert (told["outcome"], told["layer"]) == ("deny", "role")
    assert "ping for the agent mute as judge" in terminal.ok(
        "explain", "ping", "--agent", "mute", "--agent-type", "judge"
    )


def test_the_owner_can_be_asked_about(terminal: Terminal) -> None:
    assert terminal.json("explain", "create_agent", "--as-owner", "--json")["outcome"] == "allow"
    assert "for the owner" in terminal.ok("explain", "create_agent", "--as-owner")


def test_an_unknown_tool_is_refused(terminal: Terminal) -> None:
    assert "there is no tool conjure" in terminal.fails("explain", "conjure")
