"""Uploading documents: by whom, what is refused, where it ends up, and that it is found afterwards."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.crew import person
from tests.web.guest import Guest, words_of
from tests.web.site import Viewer

TEXT = b"# Wading\n\nThe <b>shoebill</b> stands in the marsh & waits."


async def send(owner: Guest, name: str, content: bytes = TEXT, **fields: str) -> Any:
    return await owner.post("/knowledge/upload", fields, files={"file": (name, content)})


def uploads(owner: Guest) -> list[Path]:
    return sorted(Path(owner.fleet.platform.settings.home).glob("uploads/**/*.*"))


async def test_whoever_is_not_signed_in_or_only_looks_uploads_nothing(guest: Guest, owner: Guest) -> None:
    assert (await send(guest, "a.md")).status_code == 303
    assert (await send(person(owner, "viewer"), "a.md")).status_code == 403
    assert uploads(owner) == []
    assert "There are no documents yet" in await owner.words("/knowledge")


async def test_a_form_without_its_token_uploads_nothing(owner: Guest) -> None:
    answer = await owner.client.post("/knowledge/upload", files={"file": ("a.md", TEXT)})
    assert answer.status_code == 403
    assert uploads(owner) == []


@pytest.mark.parametrize("name", [".hidden.md", "a.exe", "noending", "x" * 200 + ".md", "..", " .md"])
async def test_names_that_could_mean_anything_else_are_refused(owner: Guest, name: str) -> None:
    assert (await send(owner, name)).status_code in (400, 422)
    assert uploads(owner) == []


async def test_a_path_in_a_name_is_left_out(owner: Guest) -> None:
    assert (await send(owner, "../../etc/cron.d/evil.md")).status_code == 303
    assert [path.name for path in uploads(owner)] == ["evil.md"]
    assert uploads(owner)[0].parent.name == "uploads"


@pytest.mark.parametrize("content", [b"", b"\0\1\2", b"\xff\xfe broken", b"   \n"])
async def test_what_cannot_be_read_is_not_kept(owner: Guest, content: bytes) -> None:
    assert (await send(owner, "a.md", content)).status_code in (400, 422)
    assert uploads(owner) == []


async def test_no_file_at_all_is_said(owner: Guest) -> None:
    answer = await owner.post("/knowledge/upload", files={"other": ("", b"")})
    assert "none was chosen" in words_of(answer.text)


async def test_a_form_that_is_too_large_is_not_read(owner: Guest) -> None:
    answer = await owner.client.post(
        "/knowledge/upload", content=b"x", headers={"content-length": str(1 << 40), "content-type": "text/plain"}
    )
    assert answer.status_code == 413


async def test_an_upload_turns_the_vault_on_and_is_found(owner: Guest) -> None:
    assert (await send(owner, "Wading birds.md")).headers["location"] == "/knowledge"
    page = (await owner.get("/knowledge")).text
    assert "uploads/Wading birds.md" in page
    found = (await owner.get("/knowledge?q=shoebill")).text
    assert "&lt;b&gt;<mark>shoebill</mark>&lt;/b&gt;" in found
    read = await owner.get("/knowledge/documents/uploads/Wading%20birds.md")
    assert "stands in the marsh &amp; waits." in read.text


async def test_a_file_of_the_same_name_is_kept_unless_it_is_replaced(owner: Guest) -> None:
    await send(owner, "a.md")
    assert (await send(owner, "a.md", b"# Other\n\npelican")).status_code == 409
    assert "pelican" not in await owner.words("/knowledge/documents/uploads/a.md")
    assert (await send(owner, "a.md", b"# Other\n\npelican", replace="yes")).status_code == 303
    assert "pelican" in await owner.words("/knowledge/documents/uploads/a.md")


async def test_a_link_is_neither_followed_nor_written_through(owner: Guest, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
    (root / "uploads").symlink_to(outside)
    await owner.fleet.call(owner.fleet.owner, "configure_vault", on=True, root=str(root))
    assert (await send(owner, "a.md")).status_code in (400, 422)
    assert list(outside.iterdir()) == []
    (root / "uploads").unlink()
    (root / "uploads").mkdir()
    (outside / "precious.md").write_text("keep me")
    (root / "uploads" / "a.md").symlink_to(outside / "precious.md")
    assert (await send(owner, "a.md")).status_code == 409
    assert (await send(owner, "a.md", replace="yes")).status_code == 303
    assert (outside / "precious.md").read_text() == "keep me"
    assert not (root / "uploads" / "a.md").is_symlink()


async def test_an_upload_goes_where_the_vault_looks(owner: Guest, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    vault = {"on": True, "root": str(tmp_path / "root"), "folders": ["docs/team"], "globs": ["*.md"]}
    await owner.fleet.call(owner.fleet.owner, "configure_vault", **vault)
    assert (await send(owner, "a.txt")).status_code in (400, 422)
    assert (await send(owner, "a.md")).status_code == 303
    assert (tmp_path / "root" / "docs" / "team" / "uploads" / "a.md").read_bytes() == TEXT


async def test_a_vault_that_somebody_turned_off_stays_off(owner: Guest) -> None:
    await send(owner, "a.md")
    await owner.post("/knowledge/vault", {"on": "no"})
    answer = await send(owner, "b.md")
    assert answer.status_code >= 400
    assert "vault of project default is off" in words_of(answer.text)


async def test_the_script_is_told_in_json(owner: Guest) -> None:
    owner.client.headers["accept"] = "application/json"
    assert (await send(owner, "a.exe")).json()["refused"].startswith("name: a.exe has no ending")
    assert (await send(owner, "a.md")).json() == {"path": "uploads/a.md", "href": "/knowledge"}


def test_a_real_file_is_uploaded_and_found_by_search(viewer: Viewer, tmp_path: Path) -> None:
    file = tmp_path / "marsh.md"
    file.write_bytes(TEXT + b"\n\nMore about the marsh. " * 500)
    page = viewer.open("/knowledge")
    viewer.check()
    page.locator("#file").set_input_files(str(tmp_path / "marsh.md"))
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("link", name="Wading")).to_be_visible()
    viewer.check()
    page.get_by_label("Search documents").fill("shoebill")
    page.keyboard.press("Enter")
    expect(page.locator("mark", has_text="shoebill").first).to_be_visible()
    viewer.check()
    page.get_by_role("link", name="marsh.md").first.click()
    expect(page.locator("article mark").first).to_have_text("shoebill")
    viewer.check()
