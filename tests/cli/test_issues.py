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


def test_an_issue_of_any_project_is_moved_without_naming_its_project(terminal: Terminal) -> None:
    terminal.ok("projects", "create", "shop")
    terminal.ok("issues", "create", "A till", "--project", "shop")
    assert terminal.json("issues", "move", "SHO-001", "in_progress", "--json")["status"] == "in_progress"
    assert "there is no issue SHO-001" in terminal.fails("issues", "move", "SHO-001", "todo", "--project", "default")


def test_an_issue_is_edited_and_loses_the_label_that_keeps_it_waiting(terminal: Terminal) -> None:
    terminal.ok("projects", "create", "shop")
    terminal.ok("issues", "create", "A till", "--project", "shop", "--label", "needs-planning", "--label", "ui")
    words = ["--title", "Two tills", "--remove-label", "needs-planning", "--add-label", "money"]
    assert terminal.json("issues", "edit", "SHO-001", *words, "--json")["changed"] == ["title", "labels"]
    shown = terminal.json("issues", "show", "SHO-001", "--json")
    assert (shown["title"], shown["labels"]) == ("Two tills", ["phase:ready", "money", "ui"])
    assert terminal.json("issues", "edit", "SHO-001", "--priority", "1", "--json")["changed"] == ["priority"]
    other = terminal.json("issues", "create", "A drawer", "--project", "shop", "--json")["identifier"]
    assert terminal.json("issues", "edit", "SHO-001", "--depends-on", other, "--json")["changed"] == ["depends_on"]
    assert terminal.json("issues", "edit", "SHO-001", "--independent", "--json")["changed"] == ["depends_on"]
    assert "the phase is no label" in terminal.fails("issues", "edit", "SHO-001", "--add-label", "phase:research")
    assert "there is no issue DEF-404" in terminal.fails("issues", "edit", "DEF-404", "--add-label", "ui")
