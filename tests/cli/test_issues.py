"""The commands with which the owner sees and steers issues."""

from tests.cli.terminal import Terminal


def test_without_issues_the_list_says_how_to_make_one(terminal: Terminal) -> None:
    assert "rookery issues create" in terminal.ok("issues")
    assert terminal.json("issues", "--json") == []
    assert "nothing is ready" in terminal.ok("issues", "ready")
    assert "nothing waits" in terminal.ok("issues", "advance")


def test_what_is_not_there_ends_in_one_sentence(terminal: Terminal) -> None:
    assert "there is no issue DEF-404" in terminal.fails("issues", "show", "DEF-404")
    assert "there is no issue DEF-404" in terminal.fails("issues", "move", "DEF-404", "todo")
    assert "there is no project nowhere" in terminal.fails("issues", "--project", "nowhere")


def test_an_issue_is_made_listed_shown_and_moved(terminal: Terminal) -> None:
    first = terminal.json("issues", "create", "Log in", "--label", "ui", "--priority", "1", "--json")
    assert first["identifier"] == "DEF-001"
    terminal.ok("issues", "create", "Log out", "--depends-on", "def-1", "--description", "And mean it.")
    assert [each["identifier"] for each in terminal.json("issues", "--json")] == ["DEF-001", "DEF-002"]
    assert [each["identifier"] for each in terminal.json("issues", "list", "--label", "ui", "--json")] == ["DEF-001"]
    assert [each["identifier"] for each in terminal.json("issues", "ready", "--json")] == ["DEF-001"]
    shown = terminal.ok("issues", "show", "DEF-002")
    assert "Log out" in shown
    assert "And mean it." in shown
    assert terminal.json("issues", "show", "DEF-002", "--json")["depends_on"][0]["identifier"] == "DEF-001"
    assert terminal.json("issues", "move", "DEF-001", "in_progress", "--json")["status"] == "in_progress"
    assert "cannot become done" in terminal.fails("issues", "move", "DEF-001", "done")


def test_a_project_has_issues_of_its_own(terminal: Terminal) -> None:
    terminal.ok("projects", "create", "shop")
    made = terminal.json("issues", "create", "Sell", "--project", "shop", "--json")
    assert made["identifier"] == "SHO-001"
    assert terminal.json("issues", "--json") == []
    assert len(terminal.json("issues", "--project", "shop", "--json")) == 1
