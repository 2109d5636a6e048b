"""Every page of a console with a fleet's work in it: nothing goes wrong on any, and nobody is kept out."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import ViewportSize

from tests.web.conftest import SCREENS
from tests.web.crawling import cookies_of, crawl, one_of_each, played
from tests.web.site import Site, Viewer

PAGES_AT_LEAST = 35


@pytest.fixture(scope="module")
def shop() -> Iterator[Site]:
    """A server on the home of a played demo."""
    with played() as home:
        site = Site(home, ROOKERY_ORCHESTRATOR="no")
        yield site
        site.close()


@pytest.mark.early
@pytest.mark.parametrize(("screen", "dark"), [("desktop", False), ("phone", True)])
def test_every_page_fits_its_screen_and_keeps_nobody_out(
    shop: Site, make_viewer: Callable[..., Viewer], screen: str, dark: bool
) -> None:
    size: ViewportSize = SCREENS[screen]
    viewer: Viewer = make_viewer(shop, size, dark=dark).sign_in()
    seen = crawl(shop.url, cookies_of(viewer), ("/?project=till", "/board?project=till", "/health?project=till"))
    assert {path: page.wrong for path, page in seen.items() if page.wrong} == {}
    pages = one_of_each(path for path, page in seen.items() if page.whole)
    assert len(pages) >= PAGES_AT_LEAST, pages
    faults: dict[str, str] = {}
    for path in pages:
        viewer.open(path)
        try:
            viewer.check()
        except AssertionError as fault:
            faults[path] = str(fault)[:600]
            viewer.wrong.clear()
    assert faults == {}, "\n".join(f"{path}: {fault}" for path, fault in faults.items())
