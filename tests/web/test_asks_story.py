"""An agent waits, a person answers in a browser, and the agent goes on: on a desktop and on a phone."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.server.processes import Client, environment, outcome
from tests.web.site import PHONE, Site, Viewer


@pytest.fixture
def agent(site: Site) -> Iterator[Client]:
    """An agent at a client program of its own, in a project with documents; it asks before it destroys anything."""
    folder = site.home / "handbook"
    folder.mkdir()
    for name in ("old", "older"):
        (folder / f"{name}.md").write_text(f"# The {name} rules\n\nNobody reads them.", encoding="utf-8")
    site.call("create_project", slug="docs", path=str(folder))
    site.call("configure_vault", as_={"as_owner": True, "project": "docs"}, on=True)
    site.call("update_agent", agent="default", mode="act")
    for tool in ("vault_update", "vault_delete"):
        site.call("grant_tool", agent="default", tool=tool, reason="it keeps the handbook")
    client = Client(site.home, environment(site.home, None), "--project-id", "docs")
    client.initialize()
    for name in ("old", "older"):
        assert client.call("vault_update", path=f"{name}.md")["status"] == "indexed"
    yield client
    client.close()


@pytest.fixture
def client(site: Site) -> Iterator[Client]:
    """An agent that asks before it changes anything."""
    site.call("update_agent", agent="default", mode="ask")
    client = Client(site.home, environment(site.home, None))
    client.initialize()
    yield client
    client.close()


def test_an_agent_waits_and_goes_on_with_what_a_person_says(agent: Client, viewer: Viewer) -> None:
    page = viewer.open("/asks")
    expect(page.get_by_text("Nothing waits for you").last).to_be_visible()

    wanted = agent.ask_tool("ask_owner", question="Which colour?", options=["red", "blue"], context="For the **door**.")
    ask = page.get_by_role("article", name="Which colour?")
    expect(ask).to_contain_text("For the **door**.")
    viewer.check()
    ask.get_by_role("button", name="blue").click()
    answer = outcome(agent.answer_to(wanted))
    assert (answer["answer"], answer["option"], answer["answered_by"], answer["via"]) == ("blue", 2, "owner", "web")
    expect(page.get_by_text("Answered: blue.")).to_be_visible()
    expect(ask).to_have_count(0)

    destroying = agent.ask_tool("vault_delete", path="old.md")
    approval = page.get_by_role("article", name="May default run vault_delete (destructive)?")
    expect(approval).to_contain_text("vault_delete is destructive and the session's mode is act")
    expect(approval.locator(".ask-field")).to_contain_text("old.md")
    approval.get_by_role("button", name="Approve", exact=True).click()
    assert outcome(agent.answer_to(destroying))["path"] == "old.md"

    destroying = agent.ask_tool("vault_delete", path="older.md")
    expect(approval.locator(".ask-field")).to_contain_text("older.md")
    approval.get_by_label("Reason for denying").fill("keep it for the museum")
    # Something else is asked meanwhile: what is half written stays.
    other = agent.ask_tool("ask_owner", question="And the roof?")
    expect(page.get_by_role("article", name="And the roof?")).to_be_visible()
    approval.get_by_label("Reason for denying").press("Enter")
    refused = outcome(agent.answer_to(destroying))["error"]
    assert refused["message"].endswith("denied vault_delete: keep it for the museum")
    page.get_by_label("Your answer").fill("green")
    page.get_by_role("button", name="Send").click()
    assert outcome(agent.answer_to(other))["answer"] == "green"

    page.get_by_role("link", name="Over").click()
    over = page.locator(".ask-over li")
    expect(over).to_have_count(4)
    viewer.check()
    over.filter(has_text="Which colour?").get_by_role("link", name="Which colour?").click()
    expect(page.get_by_text("Answered by owner via web: blue")).to_be_visible()
    viewer.check()


def test_asks_are_decided_by_keyboard_and_several_together(
    agent: Client, site: Site, make_viewer: Callable[..., Viewer]
) -> None:
    viewer = make_viewer(site).sign_in()
    calls = [agent.ask_tool("vault_delete", path=f"{name}.md") for name in ("old", "older")]
    page = viewer.open("/asks")
    expect(page.get_by_role("article")).to_have_count(2)
    page.keyboard.press("j")
    expect(page.get_by_role("article").first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("a")
    expect(page.get_by_role("article")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("d")
    page.keyboard.type("a jail, not a yes")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article")).to_have_count(0)
    answers = [outcome(answer) for answer in agent.answers_to(calls)]
    assert sorted("error" in answer for answer in answers) == [False, True]
    assert next(answer for answer in answers if "error" in answer)["error"]["message"].endswith(": a jail, not a yes")

    calls = [agent.ask_tool("vault_delete", path=f"chapter-{number}.md") for number in range(3)]
    expect(page.get_by_role("article")).to_have_count(3)
    for number in (0, 1):
        page.get_by_role("article").nth(number).locator(".ask-select").click()
    expect(page.get_by_text("2 selected")).to_be_visible()
    viewer.check()
    page.locator("#batch").get_by_role("button", name="Deny").click()
    expect(page.get_by_role("article")).to_have_count(1)
    _let_two_people_answer(viewer.new_page(), page)
    agent.answers_to(calls)
    viewer.check()


def _let_two_people_answer(other: Page, page: Page) -> None:
    """Somebody answers in another window, and whoever comes second is told."""
    other.goto("/asks")
    card = other.get_by_role("article")
    expect(card).to_have_count(1)
    # Neither page hears of the other's answer before it has given its own.
    page.route("**/asks?*part=rows*", lambda route: route.fulfill(status=204))
    card.get_by_role("button", name="Deny").click()
    expect(other.get_by_text("Answered: Deny.")).to_be_visible()
    page.get_by_role("article").get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Somebody was faster. Answered by owner via web: Deny")).to_be_visible()


def test_an_input_of_many_lines_is_read_before_it_is_approved_on_a_phone(
    site: Site, client: Client, make_viewer: Callable[..., Viewer]
) -> None:
    text = "".join(f"line {number} <script>alert(1)</script> {'y' * 60}\n" for number in range(90))
    wanted = client.ask_tool("save_memory", key="rules", content=text)
    viewer = make_viewer(site, PHONE, dark=True).sign_in()
    page = viewer.open("/asks")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Read all of it to approve").click()
    page.locator(".ask-field summary").click()
    expect(page.get_by_text("line 89 <script>alert(1)</script>").first).to_be_visible()
    viewer.check()
    page.get_by_text("Approve for a while").click()
    page.get_by_label("For how long").select_option("7 days")
    page.get_by_role("button", name="Approve for that long").click()
    # A yes for a while changes the agent's rights, and who waits is looked up anew: it comes back once.
    assert outcome(client.answer_to(wanted))["error"]["code"] == "APPROVAL_REQUIRED"
    for content in (text, "fewer"):
        assert "error" not in client.call("save_memory", key="rules", content=content)
    viewer.check()
