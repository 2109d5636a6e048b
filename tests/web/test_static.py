"""Files that browsers fetch."""

import gzip

from rookery.web.static import FOREVER, assets, static_url
from tests.web.guest import Guest


async def test_there_is_no_way_out_of_the_folder(guest: Guest) -> None:
    for name in ("../console.py", "..%2fconsole.py", "vendor/../../visit.py", "vendor/.fetched", "nothing.js"):
        assert (await guest.get(f"/static/{name}")).status_code == 404


async def test_a_file_is_kept_for_ever_under_the_name_of_its_content_and_never_under_another(guest: Guest) -> None:
    answer = await guest.get(static_url("console.css"))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, FOREVER)
    assert answer.headers["content-type"].startswith("text/css")
    stale = await guest.get("/static/console.css?v=of-another-release")
    assert (stale.status_code, stale.headers["cache-control"]) == (200, "no-cache")


async def test_whoever_takes_packed_files_gets_the_same_content(guest: Guest) -> None:
    plain = await guest.get(static_url("console.js"), headers={"Accept-Encoding": "identity"})
    packed = await guest.get(static_url("console.js"), headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content == gzip.decompress(assets()["console.js"].packed)


def test_what_others_wrote_came_with_the_package_and_with_its_licence() -> None:
    names = {name for name in assets() if name.startswith("vendor/")}
    assert {"vendor/htmx.min.js", "vendor/hx-sse.min.js", "vendor/pico.min.css", "vendor/uplot.min.js"} <= names
    for of in ("htmx", "pico", "uplot"):
        assert assets()[f"vendor/{of}.LICENSE.txt"].body
