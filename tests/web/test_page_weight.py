"""How much a browser fetches to show Home."""

import re

from rookery.web.static import assets
from tests.web.guest import Guest

MOST_BYTES = 250_000


async def test_home_and_all_that_it_fetches_are_light(owner: Guest) -> None:
    page = (await owner.get("/")).text
    fetched = set(re.findall(r'(?:src|href)="/static/([^"?]+)', page))
    assert {"console.css", "console.js", "vendor/pico.min.css", "vendor/htmx.min.js"} <= fetched
    sizes = {name: len(assets()[name].body) for name in fetched} | {"the page": len(page.encode())}
    assert sum(sizes.values()) <= MOST_BYTES, sizes
