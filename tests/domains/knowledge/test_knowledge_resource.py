"""knowledge://{path}: a document, to be read by address."""

from typing import Any

import pytest

from rookery.core.errors import ConfigurationError, NotFound, RookeryError
from tests.domains.knowledge.library import Library


async def read(library: Library, path: str, project: str = "docs") -> tuple[str, str | None]:
    (contents,) = await library.fleet.platform.calls.read(library.worker(project), f"knowledge://{path}")
    assert isinstance(contents.text, str)
    return contents.text, contents.mime_type


async def test_what_is_not_there_or_in_another_project_is_not_found(library: Library) -> None:
    await library.open()
    await library.index("a.md", "# A\n\nwords")
    await library.open("other", library.folder)
    with pytest.raises(NotFound):
        await read(library, "b.md")
    with pytest.raises(NotFound):
        await read(library, "a.md", "other")
    with pytest.raises(ConfigurationError, match="setting vault"):
        await read(library, "a.md", "default")


@pytest.mark.parametrize("path", ["../a.md", "%2e%2e/a.md", "/etc/passwd", "a%00.md"])
async def test_an_address_that_leads_elsewhere_matches_nothing(library: Library, path: str) -> None:
    await library.open()
    with pytest.raises(RookeryError):
        await read(library, path)


async def test_a_long_document_is_read_as_it_was_written(library: Library) -> None:
    await library.open()
    text = "# All\n\n" + "".join(f"## Part {n}\n\n" + "many words stand here. " * 200 + "\n\n" for n in range(9))
    assert (await library.index("docs/with space.md", text)).chunks > 9
    found, mime_type = await read(library, "docs/with%20space.md")
    assert "".join(found.split()) == "".join(text.split())
    assert mime_type == "text/markdown"


async def looked_up(library: Library, project: str, typed: str | None = None) -> list[Any]:
    """The listed addresses, or what completes the beginning of a path."""
    platform, actor = library.fleet.platform, library.worker(project)
    found = platform.registry.find_resource("knowledge://x")
    assert found is not None
    declared, _ = found
    if typed is None:
        assert declared.entries is not None
        return [each.uri for each in await platform.calls.look_up(actor, declared, "entries", declared.entries, {})]
    completer = declared.complete["path"]
    look = lambda ctx: completer(ctx, typed, {})  # noqa: E731
    return await platform.calls.look_up(actor, declared, "complete", look, {"path": typed})


async def test_the_documents_of_the_project_are_listed_and_completed(library: Library) -> None:
    await library.open()
    await library.index("docs/a b.md", "# A\n\nwords")
    await library.open("empty", library.folder)
    assert await looked_up(library, "docs") == ["knowledge://docs/a%20b.md"]
    assert await looked_up(library, "docs", "docs/a") == ["docs/a b.md"]
    for project in ("default", "empty"):
        assert await looked_up(library, project) == []
        assert await looked_up(library, project, "") == []
