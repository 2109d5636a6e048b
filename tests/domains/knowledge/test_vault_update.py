"""vault_update: a file of the project becomes a document, whole and once, or nothing happens."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import (
    ConfigurationError,
    InvalidParams,
    NotFound,
    PermissionDenied,
    RookeryError,
    ValidationFailed,
)
from rookery.domains.knowledge import extract
from rookery.domains.knowledge.tables import chunks, documents
from tests.domains.knowledge.library import HashEmbedder, Library


async def refused(library: Library, path: str, kind: type[RookeryError] = ValidationFailed) -> str:
    """What the agent is told; nothing is kept."""
    with pytest.raises(kind) as caught:
        await library.call(library.worker(), "vault_update", path=path)
    assert library.kept == {}
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("profile", ["judge", "scanner", "architect", "planner", "intake"])
async def test_only_workers_and_researchers_have_it(library: Library, profile: str) -> None:
    await library.open()
    with pytest.raises(PermissionDenied, match="not among the tools of the profile"):
        await library.call(library.fleet.actor(profile=profile, project="docs"), "vault_update", path="a.md")


async def test_a_path_outside_the_root_is_refused(library: Library) -> None:
    await library.open()
    library.write("secret.md", "# outside", root=library.folder)
    assert "leads upwards" in await refused(library, "../secret.md")
    assert "leads upwards" in await refused(library, "docs/../../secret.md")
    assert "is not relative" in await refused(library, str(library.folder / "secret.md"))
    assert "is not relative" in await refused(library, "~/secret.md")
    assert "backslash" in await refused(library, "..\\secret.md")


async def test_a_symbolic_link_out_of_the_root_is_refused(library: Library) -> None:
    await library.open()
    outside = library.write("secret.md", "# outside", root=library.folder)
    (library.root / "link.md").symlink_to(outside)
    (library.root / "folder").symlink_to(library.folder)
    assert "leads out" in await refused(library, "link.md")
    assert "leads out" in await refused(library, "folder/secret.md")


async def test_what_is_hidden_is_no_knowledge_even_through_a_link(library: Library) -> None:
    await library.open()
    hidden = library.write(".env", "TOKEN=1")
    library.write("node_modules/left/README.md", "# left")
    (library.root / "env.md").symlink_to(hidden)
    assert "is not in the vault" in await refused(library, ".env")
    assert "is not in the vault" in await refused(library, "node_modules/left/README.md")
    assert "hidden" in await refused(library, "env.md")
    assert ".git" in await refused(library, ".git/config")


async def test_a_link_inside_the_root_is_followed(library: Library) -> None:
    await library.open()
    (library.root / "docs").mkdir()
    (library.root / "docs" / "readme.md").symlink_to(library.write("README.md", "# Words\n\nhere"))
    assert (await library.index("docs/readme.md")).status == "indexed"


async def test_a_file_of_two_gigabytes_is_refused_by_its_size(library: Library) -> None:
    await library.open()
    with library.write("big.txt", "").open("wb") as file:
        file.truncate(2 * 1024**3)
    assert "2147483648 bytes, maximum" in await refused(library, "big.txt")


async def test_a_binary_and_an_empty_file_and_a_blank_one_are_refused(library: Library) -> None:
    await library.open()
    library.write("a.bin", b"\x7fELF\0\0\1")
    library.write("empty.md", "")
    library.write("blank.md", " \n\t\n")
    assert "NUL byte at 4" in await refused(library, "a.bin")
    assert "is empty" in await refused(library, "empty.md")
    assert "has no text" in await refused(library, "blank.md")


async def test_invalid_utf_8_is_refused_with_the_place_of_the_fault(library: Library) -> None:
    await library.open()
    library.write("latin.md", "# caf\xe9".encode("latin-1"))
    assert "byte 0xe9 at 5" in await refused(library, "latin.md")


async def test_a_broken_pdf_is_refused(library: Library) -> None:
    await library.open()
    library.write("a.pdf", b"%PDF-1.7\nnothing of the kind")
    assert "cannot be read as a PDF" in await refused(library, "a.pdf")


async def test_a_folder_a_pipe_and_what_is_not_there_are_refused(library: Library) -> None:
    await library.open()
    (library.root / "docs").mkdir()
    os.mkfifo(library.root / "pipe.md")
    assert "not a regular file" in await refused(library, "docs")
    assert "not a regular file" in await refused(library, "pipe.md")
    assert "there is no file gone.md" in await refused(library, "gone.md", NotFound)
    assert "folder itself" in await refused(library, ".")
    await refused(library, "x" * 2000, InvalidParams)


async def test_a_file_that_the_vault_does_not_have_is_refused(library: Library) -> None:
    await library.open(folders=["docs"], globs=["*.md", "!draft*"])
    for path in ("README.md", "docs/a.txt", "docs/draft.md", "docs/a.md"):
        library.write(path, "# Words\n\nhere")
    for path in ("README.md", "docs/a.txt", "docs/draft.md"):
        assert "is not in the vault of project docs" in await refused(library, path)
    assert (await library.index("docs/a.md")).status == "indexed"


async def test_a_vault_that_is_off_or_not_set_is_named(library: Library) -> None:
    await library.call(library.fleet.owner, "create_project", slug="bare", path=str(library.root))
    with pytest.raises(ConfigurationError, match="setting vault of project bare is not set"):
        await library.call(library.worker("bare"), "vault_update", path="a.md")
    await library.open(on=False)
    with pytest.raises(ConfigurationError, match="setting vault of project docs is off"):
        await library.call(library.worker(), "vault_update", path="a.md")


async def test_a_project_without_a_folder_says_how_to_give_it_one(library: Library, tmp_path: Path) -> None:
    await library.call(library.person("default"), "configure_vault", on=True)
    with pytest.raises(ConfigurationError, match="project default has no folder"):
        await library.call(library.worker("default"), "vault_update", path="a.md")
    await library.call(library.person("default"), "configure_vault", root=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigurationError, match="is not there"):
        await library.call(library.worker("default"), "vault_update", path="a.md")


async def test_a_file_becomes_a_document_with_its_chunks(library: Library) -> None:
    await library.open()
    done = await library.index("./docs//guide.md", "# Guide\n\nHow to fly.\n")
    assert (done.path, done.status, done.chunks, done.embedder) == ("docs/guide.md", "indexed", 1, None)
    (row,) = library.rows(sa.select(documents))
    assert (row.title, row.kind, row.bytes, row.revision) == ("Guide", "markdown", 21, 1)
    (chunk,) = library.rows(sa.select(chunks))
    assert (chunk.heading, chunk.content, chunk.vector) == ("Guide", "# Guide\n\nHow to fly.\n", None)


async def test_an_unchanged_file_is_not_embedded_again(meaning_library: Library) -> None:
    library, embedder = meaning_library, HashEmbedder()
    library.use(embedder)
    await library.open()
    await library.index("a.md", "# A\n\nold words")
    assert (await library.index("a.md")).status == "unchanged"
    assert len(embedder.embedded) == 1
    changed = await library.index("a.md", "# A\n\nnew words")
    assert (changed.status, len(embedder.embedded)) == ("indexed", 2)
    assert library.kept == {"a.md": 1}
    (row,) = library.rows(sa.select(chunks))
    assert "new words" in row.content


async def test_an_embedder_that_comes_later_or_is_another_embeds_what_is_there(library: Library) -> None:
    await library.open()
    await library.index("a.md", "# A\n\nwords")
    library.use(HashEmbedder())
    assert (await library.index("a.md")).embedder == "hash-512"
    library.use(None)
    assert (await library.index("a.md")).status == "unchanged"
    library.use(HashEmbedder("hash-2"))
    assert (await library.index("a.md")).status == "indexed"
    assert {row.embedder for row in library.rows(sa.select(chunks.c.embedder))} == {"hash-2"}


async def test_a_changed_document_that_can_no_longer_be_read_stays_as_it_was(library: Library) -> None:
    await library.open()
    await library.index("a.md", "# A\n\nwords")
    library.write("a.md", b"\0")
    with pytest.raises(ValidationFailed):
        await library.index("a.md")
    assert library.kept == {"a.md": 1}
    library.root.joinpath("a.md").unlink()
    with pytest.raises(NotFound) as caught:
        await library.index("a.md")
    assert "vault_delete" in (caught.value.hint or "")


async def test_a_document_of_many_chunks_is_replaced_as_a_whole(meaning_library: Library) -> None:
    library = meaning_library
    await library.open()
    section = "## Part {}\n\n" + "many words stand here. " * 200 + "\n\n"
    long = "# All\n\n" + "".join(section.format(number) for number in range(20))
    assert (await library.index("a.md", long)).chunks > 20
    assert (await library.index("a.md", "# All\n\nshort")).chunks == 1
    assert library.kept == {"a.md": 1}


async def test_a_file_that_changes_while_it_is_embedded_ends_up_as_it_is_last(library: Library) -> None:
    await library.open()
    library.write("a.md", "# A\n\nfirst")

    class Meddler(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> list[bytes]:
            if not self.embedded:
                database, revision = library.fleet.platform.database, documents.c.revision + 1
                database.direct(lambda tx: tx.run(sa.update(documents).values(revision=revision)), write=True)
                library.write("a.md", "# A\n\nthird")
            return super().embed(texts)

    await library.index("a.md")
    library.use(Meddler())
    library.write("a.md", "# A\n\nsecond")
    assert (await library.index("a.md")).status == "indexed"
    (row,) = library.rows(sa.select(chunks))
    assert "third" in row.content


def test_the_limits_of_a_file_are_stated_by_its_kind() -> None:
    assert (extract.limit_of("a.md"), extract.limit_of("a.html")) == (20 * 1024**2, 5 * 1024**2)
    assert extract.limit_of("A.PDF") == 50 * 1024**2
