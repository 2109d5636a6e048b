"""The audit log on the console: found, proved and taken along."""

import csv
import hashlib
import io
import json
import re
import time
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from playwright.sync_api import ViewportSize, expect

from rookery.core.record import COLUMNS
from rookery.identity.store import IdentityStore
from rookery.web import audit_files, chain_check
from tests.db import sample
from tests.domains.audit.test_search_audit import written
from tests.domains.audit.test_verify_audit import tamper
from tests.web.crew import person
from tests.web.guest import Guest, words_of
from tests.web.site import PHONE, Site, Viewer

EVIL = "=cmd|' /C calc'!A0<script>alert(1)</script>\u202e\x1b[31m\x7f"
LIMIT_S = 10


async def sealed(owner: Guest, calls: int = 3) -> None:
    """So many calls, and every record has its place."""
    for _ in range(calls):
        await owner.fleet.call(owner.fleet.actor(), "ping")
    limit = time.monotonic() + LIMIT_S
    while (await owner.fleet.call(owner.fleet.owner, "verify_audit")).records < calls:
        assert time.monotonic() < limit


def ids(page: str) -> list[int]:
    return [int(each) for each in re.findall(r'id="record-(\d+)"', page)]


@pytest.mark.parametrize("page", ["/audit", "/audit/1", "/audit/export"])
async def test_whoever_is_not_signed_in_sees_no_record(guest: Guest, page: str) -> None:
    answer = await guest.get(page)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


async def test_a_form_without_its_token_verifies_nothing(owner: Guest) -> None:
    assert (await owner.client.post("/audit/verify", data={})).status_code == 403
    assert chain_check.chain_check(owner.fleet.platform.database).result is None


@pytest.mark.parametrize("role", ["viewer", "operator"])
async def test_whoever_may_look_on_reads_verifies_and_exports(owner: Guest, role: str) -> None:
    await sealed(owner)
    other = person(owner, role)
    page = (await other.get("/audit")).text
    assert "The chain holds" in page
    assert (await other.get(f"/audit/{ids(page)[0]}")).status_code == 200
    assert (await other.post("/audit/verify")).status_code == 303
    assert (await other.get("/audit/export")).status_code == 200


async def test_records_of_another_tenant_are_not_there(owner: Guest) -> None:
    fleet = owner.fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    written(fleet, {"tenant": "other", "tool": "their_tool"}, {"tool": "our_tool"})
    (theirs,) = sample.audit_rows(fleet.platform.database, "tool = 'their_tool'")
    page = await owner.words("/audit")
    assert ("our_tool" in page, "their_tool" in page) == (True, False)
    assert (await owner.get(f"/audit/{theirs.id}")).status_code == 404
    assert "their_tool" not in (await owner.get("/audit/export")).text


async def test_the_log_is_filtered_by_its_address(owner: Guest) -> None:
    fleet = owner.fleet
    written(fleet, {"tool": "old_tool", "at_ms": 1_700_000_000_000, "outcome": "failed", "code": "CONFLICT"})
    await fleet.call(fleet.owner, "create_agent", name="heron")
    await fleet.call(fleet.actor(agent="heron", session="ses-7"), "ping")
    for address, there, gone in (
        ("?tool=ping", "ping", "create_agent"),
        ("?who=heron", "ping", "old_tool"),
        ("?outcome=failed", "CONFLICT", "create_agent"),
        ("?effect=write", "create_agent", "old_tool"),
        ("?q=conf", "old_tool", "create_agent"),
        ("?session=ses-7", "ping", "old_tool"),
        ("?to=2023-11-15T00:00", "old_tool", "create_agent"),
        ("?from=2023-11-15T00:00&in=default", "create_agent", "old_tool"),
    ):
        rows = words_of((await owner.part(f"/audit{address}", "rows")).text)
        assert there in rows, address
        assert gone not in rows, address
    assert "No record is like this" in await owner.words("/audit?q=nothing+such")


@pytest.mark.parametrize("wrong", ["?in=nowhere", "?cursor=!", "?from=yesterday", "?q=" + "x" * 300, "?to=0001-01-01"])
async def test_a_filter_that_names_nothing_says_so_and_keeps_the_filters(owner: Guest, wrong: str) -> None:
    answer = await owner.get(f"/audit{wrong}")
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
    assert 'name="outcome"' in answer.text


async def test_older_records_are_on_the_next_page(owner: Guest) -> None:
    written(owner.fleet, *({"tool": "counted"} for _ in range(70)))
    first = (await owner.get("/audit?tool=counted")).text
    older = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    second = (await owner.get(older)).text
    assert (len(ids(first)), len(ids(second))) == (50, 20)
    assert min(ids(first)) > max(ids(second))
    assert 'rel="next"' not in second


async def test_a_record_has_a_page_with_its_hashes(owner: Guest) -> None:
    await sealed(owner, 2)
    one, two = sample.audit_rows(owner.fleet.platform.database, "position <= 2")
    words = await owner.words(f"/audit/{two.id}")
    for told in (two.hash, one.hash, two.input_digest, two.request, "matches its hash", "default"):
        assert told in words, told
    assert (await owner.get("/audit/999999999")).status_code == 404
    assert (await owner.get(f"/audit/{1 << 60}")).status_code in (400, 422)
    assert (await owner.get("/audit/x")).status_code == 404


async def test_a_record_that_is_not_sealed_says_so(owner: Guest) -> None:
    owner.fleet.platform.database.tick = None
    written(owner.fleet, {"tool": "late"})
    tamper(owner.fleet, "UPDATE audit_log SET position = NULL, hash = NULL WHERE tool = 'late'")
    page = (await owner.get("/audit?tool=late")).text
    assert "not sealed yet" in page
    assert "not sealed yet" in await owner.words(f"/audit/{ids(page)[0]}")


async def test_a_broken_chain_is_unmistakable(owner: Guest) -> None:
    await sealed(owner, 5)
    assert "The chain holds" in await owner.words("/audit")
    tamper(owner.fleet, "UPDATE audit_log SET outcome = 'done' WHERE position = 3")
    (bad,) = sample.audit_rows(owner.fleet.platform.database, "position = 3")
    assert (await owner.post("/audit/verify")).headers["location"] == "/audit"
    page = (await owner.get("/audit")).text
    assert "The chain is broken at record 3" in page
    assert "The 2 records before" in words_of(page)
    assert f'href="/audit/{bad.id}"' in page
    assert "This record does not match its hash" in await owner.words(f"/audit/{bad.id}")


async def test_a_long_chain_is_checked_a_part_at_a_time(owner: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    written(owner.fleet, *({} for _ in range(95)))
    monkeypatch.setattr(chain_check, "PART", 40)
    first = (await owner.get("/audit")).text
    assert "The chain is being checked" in first
    assert 'hx-trigger="load"' in first
    assert "40 of" in words_of(first)
    part = (await owner.part("/audit", "chain")).text
    assert "<html" not in part
    assert "The chain holds" in part
    assert 'hx-trigger="load"' not in part


async def test_what_was_checked_is_extended_and_a_cut_end_is_noticed(
    owner: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sealed(owner)
    await owner.get("/audit")
    check = chain_check.chain_check(owner.fleet.platform.database)
    assert check.result is not None
    before = check.result
    monkeypatch.setattr(chain_check, "FRESH_MS", 0)
    await sealed(owner, before["records"] + 3)
    await owner.get("/audit")
    assert check.result["records"] > before["records"]
    assert check.result["whole_ms"] == before["whole_ms"]
    tamper(owner.fleet, "DELETE FROM audit_log WHERE position > 1")
    assert "The chain is broken" in await owner.words("/audit")


async def test_the_export_is_proved_without_us(owner: Guest) -> None:
    await sealed(owner, 4)
    answer = await owner.get("/audit/export?tool=ping")
    assert re.fullmatch(r'attachment; filename="rookery-audit-\w+\.jsonl"', answer.headers["content-disposition"])
    records = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["tool"] for each in records] == ["ping"] * 4
    assert [each["id"] for each in records] == sorted((each["id"] for each in records), reverse=True)
    for each in records:
        values = json.dumps([each[name] for name in COLUMNS], separators=(",", ":"))
        proof = f"{each['previous']}:{each['position']}:{values}"
        assert hashlib.sha256(proof.encode()).hexdigest() == each["hash"]


async def test_no_cell_of_a_spreadsheet_is_a_formula(owner: Guest) -> None:
    written(
        owner.fleet,
        *({"tool": f"{first}1+1", "source": EVIL, "request": "req-f"} for first in ("=", "+", "-", "@", "\t")),
    )
    answer = await owner.get("/audit/export?format=csv&request=req-f")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    head, *rows = csv.reader(io.StringIO(answer.text))
    assert head[:4] == ["id", "position", "previous", "hash"]
    assert len(rows) == 5
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert not [mark for mark in ("\u202e", "\x1b", "\x7f") if mark in answer.text]
    assert (await owner.get("/audit/export?format=xlsx")).status_code in (400, 422)
    assert (await owner.get("/audit/export?in=nowhere")).status_code == 404


async def test_a_file_has_a_limit_and_says_where_it_was_cut(owner: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    written(owner.fleet, *({"tool": "counted"} for _ in range(9)))
    for kind in ("jsonl", "csv"):
        assert audit_files.CUT not in (await owner.get(f"/audit/export?tool=counted&format={kind}")).text
    monkeypatch.setattr(audit_files, "MOST", 5)
    lines = (await owner.get("/audit/export?tool=counted")).text.splitlines()
    assert (len(lines), json.loads(lines[-1])) == (6, {"cut": audit_files.CUT})
    rows = (await owner.get("/audit/export?tool=counted&format=csv")).text.splitlines()
    assert (len(rows), audit_files.CUT in rows[-1]) == (7, True)


async def test_what_others_called_themselves_is_shown_harmless(owner: Guest) -> None:
    evil = dict.fromkeys(("tool", "source"), EVIL + "W" * 5000000)
    evil |= dict.fromkeys(("subject", "request", "session", "code", "layer", "kind", "profile", "trace"), EVIL)
    written(owner.fleet, {**evil, "agent": None, "issue": EVIL, "project": EVIL})
    (row,) = owner.fleet.platform.database.direct(
        lambda tx: tx.all(sa.text("SELECT id FROM audit_log WHERE trace IS NOT NULL"))
    )
    for address in ("/audit", f"/audit/{row.id}", "/audit?q=calc", "/audit/export"):
        text = (await owner.get(address)).text
        assert not [mark for mark in ("\u202e", "\x1b", "\x7f") if mark in text], address
        if address != "/audit/export":
            assert "<script>alert" not in text
            assert len(text) < 200_000


def test_a_person_finds_a_record_verifies_the_chain_and_takes_the_log_along(
    make_site: Callable[..., Site], screen: ViewportSize, make_viewer: Callable[..., Viewer]
) -> None:
    site = make_site()
    viewer = make_viewer(site, screen).sign_in()
    site.call("create_agent", name="heron")
    site.call("ping", as_={"agent": "heron"})
    page = viewer.open("/audit")
    chain = page.locator("#chain")
    expect(chain).to_contain_text("The chain holds")
    page.get_by_role("searchbox", name="Text").fill("heron")
    page.get_by_role("searchbox", name="Text").press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    viewer.check()

    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON Lines").click()
    (record,) = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    assert record["tool"] == "ping"
    viewer.check()
    page.keyboard.press("Escape")

    tamper(site.fleet, "UPDATE audit_log SET tool = 'pong' WHERE position = 1")
    page.get_by_role("button", name="Verify now").click()
    expect(chain.get_by_role("alert")).to_contain_text("The chain is broken at record 1")
    viewer.check()
    page.locator("tbody tr a").first.click()
    expect(page.get_by_role("heading", name="Record #")).to_be_visible()
    expect(page.get_by_text(record["hash"])).to_be_visible()
    viewer.check()


def test_on_a_phone_how_a_call_ended_is_seen_without_scrolling_sideways(
    site: Site, make_viewer: Callable[..., Viewer]
) -> None:
    written(site.fleet, {"tool": "mcp_tool_with_quite_a_name", "outcome": "refused", "code": "forbidden"})
    viewer = make_viewer(site, PHONE).sign_in()
    page = viewer.open("/audit?tool=mcp_tool_with_quite_a_name")
    box = page.locator("table.audit tbody tr .badge").first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= PHONE["width"]
    viewer.check()
