"""vault_delete: a document goes with its chunks and vectors; the file stays."""

import pytest
import sqlalchemy as sa

from rookery.core.errors import NotFound, PermissionDenied, ValidationFailed
from rookery.domains.knowledge.tables import chunks
from tests.domains.knowledge.library import Library


async def test_only_workers_have_it(library: Library) -> None:
    await library.open()
    with pytest.raises(PermissionDenied):
        await library.call(library.fleet.actor(profile="researcher", project="docs"), "vault_delete", path="a.md")


async def test_what_is_not_there_and_what_is_elsewhere_are_the_same(library: Library) -> None:
    await library.open()
    await library.index("a.md", "# A\n\nwords")
    await library.open("other", library.folder)
    stranger = library.stranger
    for actor in (library.worker("other"), stranger):
        with pytest.raises(NotFound, match=r"there is no document a\.md"):
            await library.call(actor, "vault_delete", path="a.md")
    with pytest.raises(NotFound, match=r"there is no document b\.md"):
        await library.call(library.worker(), "vault_delete", path="b.md")
    with pytest.raises(ValidationFailed, match="leads upwards"):
        await library.call(library.worker(), "vault_delete", path="../a.md")
    assert library.kept == {"a.md": 1}


async def test_a_document_goes_and_its_file_stays(library: Library) -> None:
    await library.open()
    await library.index("docs/a.md", "# A\n\nwords")
    gone = await library.call(library.worker(), "vault_delete", path="./docs/a.md")
    assert (gone.path, gone.chunks) == ("docs/a.md", 1)
    assert library.kept == {}
    assert library.rows(sa.select(chunks.c.seq)) == []
    assert (library.root / "docs" / "a.md").exists()
    assert (await library.search("words")).results == []
    assert (await library.index("docs/a.md")).status == "indexed"
