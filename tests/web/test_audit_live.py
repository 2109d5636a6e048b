"""The audit log while it is looked at: it goes on by itself, and moves nothing under the eyes of a reader."""

import re

from tests.db import sample
from tests.domains.audit.test_search_audit import written
from tests.web.guest import Guest, words_of

LIVE = 'hx-trigger="audit from:body"'


def last_record(owner: Guest) -> int:
    return max(row.id for row in sample.audit_rows(owner.fleet.platform.database))


def asked_again(page: str, block: str) -> str:
    """The address from which a block of the page is fetched again."""
    found = re.search(rf'id="{block}"[^>]*hx-get="([^"]+)" {re.escape(LIVE)}', page)
    assert found, f"{block} is not live"
    return found[1].replace("&amp;", "&")


def older(page: str) -> str:
    return page.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")


async def fetched(owner: Guest, address: str) -> str:
    answer = await owner.get(address, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    return words_of(answer.text)


async def test_the_newest_records_come_by_themselves(owner: Guest) -> None:
    page = (await owner.get("/audit")).text
    assert "/live?on=waiting,audit" in page
    address = asked_again(page, "rows")
    assert 'id="news"' not in page
    written(owner.fleet, {"tool": "just_now"})
    assert "just_now" in await fetched(owner, address)


async def test_a_list_that_draws_itself_again_adds_nothing_to_the_log(owner: Guest) -> None:
    written(owner.fleet, *({} for _ in range(60)))
    addresses = [asked_again((await owner.get("/audit")).text, "rows")]
    addresses.append(asked_again((await owner.get("/audit?tool=ping")).text, "news"))
    addresses.append(asked_again((await owner.get(older((await owner.get("/audit")).text))).text, "news"))
    for address in addresses:
        await fetched(owner, address)
    before = last_record(owner)
    for address in addresses * 3:
        await fetched(owner, address)
    assert last_record(owner) == before


async def test_whoever_has_filtered_is_told_of_new_records_like_these(owner: Guest) -> None:
    page = (await owner.get("/audit?tool=wanted")).text
    assert LIVE not in page.split('id="rows"')[1]
    address = asked_again(page, "news")
    written(owner.fleet, {"tool": "other"})
    assert await fetched(owner, address) == ""
    written(owner.fleet, {"tool": "wanted"})
    assert await fetched(owner, address) == "1 new record"
    written(owner.fleet, *({"tool": "wanted"} for _ in range(120)))
    assert await fetched(owner, address) == "100 or more new records"
    assert 'href="/audit?tool=wanted"' in (await owner.get(address, headers={"HX-Request": "true"})).text


async def test_whoever_reads_older_records_is_not_disturbed_by_their_own_looking(owner: Guest) -> None:
    written(owner.fleet, *({} for _ in range(60)))
    page = (await owner.get(older((await owner.get("/audit")).text))).text
    address = asked_again(page, "news")
    assert await fetched(owner, address) == ""
    written(owner.fleet, {"tool": "just_now"})
    assert await fetched(owner, address) == "1 new record"


async def test_a_list_that_was_refused_asks_for_nothing_more(owner: Guest) -> None:
    page = (await owner.get("/audit?in=nowhere")).text
    assert LIVE not in page
    assert (await owner.get("/audit?part=news&after=x", headers={"HX-Request": "true"})).status_code in (400, 422)
