"""Another search engine is one more file."""

from pathlib import Path

import pytest

from rookery.core.errors import ServiceUnavailable
from rookery.domains.research import engines
from tests.domains.research.desk import Desk
from tests.domains.research.fake_brave import Said

FILE = '''
from urllib.parse import quote
from rookery.domains.research.port import Fault, Hit, Request


class Lines:
    """Finds a page a line, and needs no key."""

    title, url, key_name = "Lines", "https://lines.example", ""

    def request(self, url, key, search):
        return Request(f"{url}/find/{quote(search.query)}", {"accept": "application/json"})

    def hits(self, said):
        return [Hit(line, f"https://{line}.example", "") for line in said] if isinstance(said, list) else None

    def fault(self, status, said):
        return Fault("")

    def windows(self, headers):
        return []


ENGINE = Lines()
'''


@pytest.fixture
def lines(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    (tmp_path / "lines.py").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    return desk.with_settings(search_engine="lines", search_api_key="")


async def test_its_faults_bear_its_name(lines: Desk) -> None:
    lines.brave.fail(Said(200, {"type": "search"}))
    with pytest.raises(ServiceUnavailable, match="Lines answered with something else"):
        await lines.call("web_search", query="rooks")


async def test_the_tools_ask_it_without_knowing_it(lines: Desk) -> None:
    lines.brave.fail(Said(200, ["rooks", "crows"]), times=3)
    found = await lines.call("web_search", query="rooks & co")
    assert [each["url"] for each in found["results"]] == ["https://rooks.example", "https://crows.example"]
    assert lines.brave.asked[0].path == "/res/v1/find/rooks%20%26%20co"
    assert "x-subscription-token" not in lines.brave.asked[0].headers
    assert (await lines.call("deep_research", query="rooks", queries=["nests"]))["total"] == 2
