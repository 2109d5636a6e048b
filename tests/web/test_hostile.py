"""Whatever agents write, pages show it as text: a whole fleet's work, with every word in the database replaced."""

from collections.abc import Callable, Iterator

import pytest

from rookery.app import make_platform
from rookery.settings import load_settings
from tests.web.crawling import cookies_of, crawl, played
from tests.web.poison import LONG, MARK, poison
from tests.web.site import DESKTOP, Site, Viewer

VISITED_IN_BROWSER = 45


@pytest.fixture(scope="module")
def fouled() -> Iterator[Site]:
    """A server on the home of a played demo, with poison in every column that holds words."""
    with played() as home:
        platform = make_platform(load_settings(str(home)))
        touched = platform.database.direct(lambda tx: poison(tx, LONG), write=True)
        platform.close()
        assert touched > 40
        site = Site(home, ROOKERY_ORCHESTRATOR="no")
        yield site
        site.close()


@pytest.mark.early
def test_no_page_takes_what_others_wrote_for_anything_but_text(
    fouled: Site, make_viewer: Callable[..., Viewer]
) -> None:
    viewer: Viewer = make_viewer(fouled, DESKTOP).sign_in()
    seen = crawl(fouled.url, cookies_of(viewer))
    wrong = {path: page.wrong for path, page in seen.items() if page.wrong}
    assert not wrong, f"{wrong}\n{fouled.server.errors[-4000:]}"
    assert sum(page.said for page in seen.values()) >= 10, f"{MARK} is on too few pages: {sorted(seen)}"
    for path in [each for each in seen if seen[each].said][:VISITED_IN_BROWSER]:
        viewer.open(path)
        assert viewer.page.evaluate("() => window.pwned") is None, path
        viewer.check(axe=False)
