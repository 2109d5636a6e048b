"""The commands with which the owner makes workflows, runs them and looks at them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.terminal import Terminal

GRAPH = {
    "name": "greet",
    "nodes": [
        {"id": "s", "type": "start", "label": "Start"},
        {"id": "t", "type": "transform", "label": "Greet", "config": {"template": "Hello {{who}}"}},
        {"id": "e", "type": "end", "label": "End"},
    ],
    "edges": [
        {"id": "1", "sourceNodeId": "s", "targetNodeId": "t"},
        {"id": "2", "sourceNodeId": "t", "targetNodeId": "e"},
    ],
}
WAIT = {"id": "t", "type": "webhook_wait", "label": "Paid?"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "greet.json"
    made.write_text(json.dumps(GRAPH), encoding="utf-8")
    return made


def test_without_workflows_the_list_says_how_to_make_one(terminal: Terminal) -> None:
    assert "rookery workflows create" in terminal.ok("workflows")
    assert terminal.json("workflows", "--json") == []


def test_what_is_not_there_or_no_workflow_ends_in_one_sentence(terminal: Terminal, tmp_path: Path) -> None:
    for command in ("show", "activate", "pause", "delete", "run", "runs", "picture"):
        assert "there is no workflow wfl-404" in terminal.fails("workflows", command, "wfl-404")
    for command in ("status", "cancel", "pause-run", "resume-run", "picture", "watch"):
        assert "there is no run wfr-404" in terminal.fails("workflows", command, "wfr-404")
    bad = tmp_path / "bad.json"
    for text, said in (
        ("{", "is no JSON"),
        ("[]", "is not a JSON object"),
        ('{"name": "x"}', "nodes: create needs it"),
    ):
        bad.write_text(text, encoding="utf-8")
        assert said in terminal.fails("workflows", "create", str(bad))
    bad.write_text(json.dumps({"name": "x", "nodes": [{"id": "a", "type": "end"}], "action": "list"}), encoding="utf-8")
    assert "there is no start node" in terminal.fails("workflows", "create", str(bad))


def test_a_workflow_is_made_run_and_looked_at(terminal_on: Terminal, file: Path) -> None:
    terminal = terminal_on
    made = terminal.json("workflows", "create", str(file), "--activate", "--json")
    assert (made["status"], made["name"], len(made["nodes"])) == ("active", "greet", 3)
    assert "s → t" in terminal.ok("workflows", "show", made["id"])
    run = terminal.json("workflows", "run", made["id"], "--input", '{"who": "Ada"}', "--json")
    assert (run["status"], run["output"]["transformed"]) == ("completed", "Hello Ada")
    assert run["id"] in terminal.ok("workflows", "runs", made["id"])
    assert "transform" in terminal.ok("workflows", "status", run["id"])
    assert "who" in terminal.json("workflows", "status", run["id"], "--json")["input"]
    watched = terminal.ok("workflows", "watch", run["id"])
    assert "t  completed" in watched
    assert watched.endswith("completed\n")
    assert "is completed, not" in terminal.fails("workflows", "cancel", run["id"])
    assert terminal.json("workflows", "pause", made["id"], "--json")["status"] == "paused"
    terminal.ok("workflows", "delete", made["id"])
    assert terminal.json("workflows", "--json") == []


def test_a_run_that_waits_says_how_to_deliver_and_can_be_ended(terminal: Terminal) -> None:
    graph = {**GRAPH, "nodes": [GRAPH["nodes"][0], WAIT, GRAPH["nodes"][2]]}
    made = terminal.json("workflows", "create", "-", "--name", "paid", "--json", typed=json.dumps(graph))
    terminal.ok("workflows", "activate", made["id"])
    run = terminal.json("workflows", "run", made["id"], "--json")
    assert f"POST /hooks/workflows/{run['id']}/t" in terminal.ok("workflows", "status", run["id"])
    result = terminal.run("workflows", "watch", run["id"], "--timeout", "0")
    assert result.exit_code == 1
    assert "t  waiting" in result.stdout
    assert "is still running" in result.stderr
    assert terminal.json("workflows", "pause-run", run["id"], "--json")["status"] == "paused"
    assert terminal.json("workflows", "resume-run", run["id"], "--json")["status"] == "running"
    assert terminal.json("workflows", "cancel", run["id"], "--json")["status"] == "cancelled"
    assert terminal.run("workflows", "watch", run["id"]).exit_code == 1


def test_a_workflow_and_a_run_are_drawn(terminal: Terminal, file: Path) -> None:
    made = terminal.json("workflows", "create", str(file), "--activate", "--agent", "default", "--json")
    run = terminal.json("workflows", "run", made["id"], "--input", '{"who": "Ada"}', "--json")
    assert terminal.ok("workflows", "picture", made["id"]).startswith("flowchart TD")
    assert "completed" in terminal.ok("workflows", "picture", run["id"], "--mermaid")
    drawn = ElementTree.fromstring(terminal.ok("workflows", "picture", run["id"], "--svg"))
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
