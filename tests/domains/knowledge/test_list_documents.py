"""list_documents: people see what agents can find."""

import pytest

from rookery.core.errors import RookeryError
from tests.domains.knowledge.library import Library


async def test_it_is_for_people_of_the_tenant(library: Library) -> None:
    await library.open()
    await library.index("a.md", "# A\n\nwords")
    with pytest.raises(RookeryError) as caught:
        await library.call(library.worker(), "list_documents")
    assert caught.value.code in {"PERMISSION_DENIED", "NOT_FOUND"}
    assert (await library.call(library.stranger, "list_documents")).documents == []
    assert (await library.call(library.person("default"), "list_documents")).documents == []


async def test_pages_follow_each_other_in_the_order_of_paths(library: Library) -> None:
    await library.open()
    for number in range(5):
        await library.index(f"docs/{number}.md", f"# N{number}\n\nwords")
    first = await library.call(library.person(), "list_documents", limit=3)
    assert [each["path"] for each in first.documents] == ["docs/0.md", "docs/1.md", "docs/2.md"]
    rest = await library.call(library.person(), "list_documents", limit=3, after=first.after)
    assert ([each["title"] for each in rest.documents], rest.after) == (["N3", "N4"], None)


async def test_a_folder_is_told_apart_from_others_that_look_alike(library: Library) -> None:
    await library.open()
    for path in ("docs/a.md", "Docs/b.md", "docs2/c.md", "docs_/d.md"):
        await library.index(path, "# A\n\nwords")
    found = await library.call(library.person(), "list_documents", below="docs")
    assert [each["path"] for each in found.documents] == ["docs/a.md"]
    exact = await library.call(library.person(), "list_documents", below="docs/a.md")
    assert [each["path"] for each in exact.documents] == ["docs/a.md"]
