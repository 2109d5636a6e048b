"""A person works at the board: by mouse and by finger, by keyboard, while others work at it too."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.web.site import DESKTOP, PHONE, Site, Viewer


def make(site: Site, title: str, *road: str, **fields: Any) -> str:
    """The identifier of an issue that was moved along the road."""
    made = site.call("create_issue", title=title, **fields)
    for status in road:
        site.call("set_issue_status", issue_id=made["id"], status=status)
    return made["identifier"]


def card(page: Page, name: str) -> Locator:
    return page.locator(f'.board-card[data-name="{name}"]:not(.board-ghost)')


def column(page: Page, status: str) -> Locator:
    return page.locator(f'.board-column[data-status="{status}"]')


def in_column(page: Page, status: str, name: str) -> Locator:
    return column(page, status).locator(f'.board-card[data-name="{name}"]')


def middle(place: Locator) -> tuple[float, float]:
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + min(box["height"], 120) / 2


def drag_by_mouse(page: Page, held: Locator, target: Locator) -> None:
    page.mouse.move(*middle(held.locator(".card-title")))
    page.mouse.down()
    page.mouse.move(*middle(target), steps=8)
    page.mouse.up()


def drag_by_finger(page: Page, held: Locator, target: str) -> None:
    """A finger takes the grip, stays at the edge until the column has come into sight, and goes there."""
    touch = page.context.new_cdp_session(page)
    x, y = middle(held.locator(".grip"))

    def send(kind: str, *at: float) -> None:
        points = [{"x": at[0], "y": at[1]}] if at else []
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", x, y)
    send("touchMove", x + 20, y + 10)
    edge = PHONE["width"] - 10
    send("touchMove", edge, y + 10)
    shown = "([target, width]) => document.querySelector(target).getBoundingClientRect().right < width"
    page.wait_for_function(shown, arg=[f'.board-column[data-status="{target}"]', PHONE["width"]])
    send("touchMove", PHONE["width"] / 2, y + 10)
    send("touchMove", *middle(column(page, target)))
    expect(column(page, target)).to_have_class(_has("over"))
    send("touchEnd")


def _has(name: str) -> Any:
    import re

    return re.compile(rf"\b{name}\b")


def status(site: Site, name: str) -> str:
    return site.call("get_issue_status", issue_id=name)["status"]


def test_a_card_is_dragged_by_mouse_and_by_finger(
    viewer: Viewer, screen: ViewportSize, make_viewer: Callable[..., Viewer]
) -> None:
    site = viewer.site
    name = make(site, "drag me")
    other = make(site, "stay here", "in_progress", "review")
    page = viewer.open("/board")
    if screen == PHONE:
        drag_by_finger(page, card(page, name), "in_progress")
    else:
        drag_by_mouse(page, card(page, name), column(page, "in_progress"))
    expect(in_column(page, "in_progress", name)).to_be_visible()
    expect(page.get_by_text(f"{name} is now in In progress.").first).to_be_visible()
    expect(in_column(page, "in_progress", name)).to_have_attribute("data-targets", "review todo blocked cancelled")
    assert status(site, name) == "in_progress"
    assert page.url.endswith("/board")

    watched = make_viewer(site, DESKTOP).sign_in()
    theirs = watched.open("/board")
    expect(column(theirs, "review").locator("[data-count]")).to_have_text("1")
    site.call("set_issue_status", issue_id=other, status="todo")
    for each in (page, theirs):
        expect(in_column(each, "todo", other)).to_have_count(1)
        expect(column(each, "review").locator("[data-count]")).to_have_text("0")
    watched.check()
    viewer.check()


def test_a_move_that_the_server_refuses_goes_back_with_the_reason(
    site: Site, make_viewer: Callable[..., Viewer]
) -> None:
    viewer = make_viewer(site).sign_in()
    name = make(site, "moved by two")
    page = viewer.open("/board")
    page.route(
        "**/board/move*",
        lambda route: (site.call("set_issue_status", issue_id=name, status="cancelled"), route.continue_()),
    )
    drag_by_mouse(page, card(page, name), column(page, "in_progress"))
    expect(page.locator(".notice.refused")).to_contain_text("the issue is cancelled")
    expect(in_column(page, "cancelled", name)).to_have_count(1)
    expect(card(page, name)).to_have_count(1)
    viewer.wrong = [each for each in viewer.wrong if "409" not in each]
    viewer.check()


def test_everything_on_the_board_works_by_keyboard(viewer: Viewer) -> None:
    site = viewer.site
    first, second = make(site, "first", priority=1), make(site, "second", priority=2)
    third = make(site, "third", "in_progress")
    page = viewer.open("/board")
    card(page, first).locator("a.card-title").focus()
    page.keyboard.press("ArrowDown")
    expect(card(page, second).locator("a.card-title")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(card(page, third).locator("a.card-title")).to_be_focused()
    page.keyboard.press("Space")
    expect(card(page, third)).to_have_class(_has("picked"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(in_column(page, "review", third)).to_have_count(1)
    expect(page.get_by_text(f"{third} is now in In review.").first).to_be_visible()
    expect(card(page, third).locator("a.card-title")).to_be_focused()
    assert status(site, third) == "review"

    site.call("edit_issue", issue_id=third, title="third, renamed")
    expect(card(page, third)).to_contain_text("third, renamed")
    expect(card(page, third).locator("a.card-title")).to_be_focused()

    page.keyboard.press("m")
    expect(card(page, third).get_by_role("button", name="To do")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    dialog = page.locator("#move-dialog")
    expect(dialog).to_contain_text("cannot come back")
    dialog.get_by_label("Reason").fill("checked by hand")
    viewer.check()
    dialog.get_by_role("button", name="Move").press("Enter")
    expect(in_column(page, "done", third)).to_have_count(1)
    expect(page.get_by_text(f"{third} is now in Done.").first).to_be_visible()
    assert status(site, third) == "done"

    page.get_by_text("New issue").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Title").fill("made by keyboard")
    viewer.check()
    page.keyboard.press("Enter")
    expect(column(page, "todo").get_by_text("made by keyboard")).to_have_count(1)
    viewer.check()
