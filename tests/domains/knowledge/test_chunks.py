"""Chunks: nothing is lost, headings stay with their texts, code stays whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.knowledge.chunks import LONGEST, OVERLAP, Kind, cut

KINDS: list[Kind] = ["markdown", "text", "html", "pdf", "source"]
PARTS = [
    "# A\n", "## B\n\n", "word " * 50 + "\n\n", "```\n" + "code\n" * 30 + "```\n", "x" * 5000, "\n\n\n", "Title\n===\n",
    "- a\n- b\n", "\f", "def f(x):\n    return 1\n\n", "    ", "~~~\nopen", "é" * 700 + ". ",
]  # fmt: skip
PARAGRAPH = "This is one sentence of many. " * 20 + "\n\n"


@pytest.mark.parametrize("kind", KINDS)
@given(parts=st.lists(st.sampled_from(PARTS) | st.text(max_size=200), max_size=30))
def test_the_chunks_of_any_text_are_the_text(kind: Kind, parts: list[str]) -> None:
    text = "".join(parts)
    found = cut(text, kind)
    assert "".join("".join(chunk.content[chunk.overlap :] for chunk in found).split()) == "".join(text.split())
    assert all(chunk.content in text and len(chunk.content) <= LONGEST for chunk in found)
    assert all(chunk.content[chunk.overlap :].strip() for chunk in found)


def test_a_section_of_some_length_gets_a_chunk_of_its_own_and_its_headings() -> None:
    text = f"# Book\n\n{PARAGRAPH * 2}## One\n\n{PARAGRAPH * 2}### Deep\n\n{PARAGRAPH * 2}## Two\n\n{PARAGRAPH * 2}"
    assert [chunk.heading for chunk in cut(text, "markdown")] == [
        "Book",
        "Book > One",
        "Book > One > Deep",
        "Book > Two",
    ]
    assert all(chunk.content.lstrip().startswith("#") for chunk in cut(text, "markdown"))


def test_small_sections_share_a_chunk() -> None:
    text = "".join(f"## Tiny {number}\n\nfew words\n\n" for number in range(10))
    assert len(cut(text, "markdown")) == 1


def test_a_heading_is_never_left_behind_by_its_text() -> None:
    text = PARAGRAPH * 5 + "## Last\n\n" + "a line of the section\n" * 100
    chunks = cut(text, "markdown")
    assert not any(chunk.content.rstrip().endswith("## Last") for chunk in chunks)
    assert [chunk.heading for chunk in chunks] == ["", "Last"]


def test_underlined_headings_count_and_rulers_do_not() -> None:
    text = f"Book\n====\n\n{PARAGRAPH * 2}Part\n----\n\n{PARAGRAPH * 2}---\n\n{PARAGRAPH * 2}"
    assert {chunk.heading for chunk in cut(text, "markdown")} == {"Book", "Book > Part"}


def test_chunks_of_one_section_overlap_from_the_start_of_a_sentence() -> None:
    first, second, *_ = cut("# Book\n\n" + "This is one sentence of many. " * 300, "markdown")
    assert 0 < second.overlap <= OVERLAP
    assert first.content.endswith(second.content[: second.overlap])
    assert second.content.startswith("This is")


def test_a_fence_that_fits_is_not_cut_and_its_comments_are_no_headings() -> None:
    fence = "```sh\n# not a heading\n" + "run this\n" * 250 + "```\n"
    text = f"# Book\n\n{PARAGRAPH * 3}{fence}\n{PARAGRAPH}"
    assert sum(fence in chunk.content for chunk in cut(text, "markdown")) == 1
    assert all(chunk.heading == "Book" for chunk in cut(text, "markdown"))


def test_a_fence_that_does_not_fit_is_cut_between_lines() -> None:
    for chunk in cut("```\n" + "run this\n" * 2000 + "```\n", "markdown"):
        assert chunk.content.strip("`\n").split("\n")[0] in {"run this", ""}


def test_source_is_cut_at_its_definitions() -> None:
    body = "    value = compute(something)\n" * 40
    text = (
        f"import os\n\n\ndef first(a):\n{body}\n\n@cached\nasync def second(b):\n{body}\n\nclass Third(Base):\n{body}"
    )
    assert [chunk.heading for chunk in cut(text, "source")][-3:] == ["def first", "async def second", "class Third"]


def test_pages_are_named() -> None:
    assert [chunk.heading for chunk in cut("\f".join([PARAGRAPH * 2] * 3), "pdf")] == ["page 1", "page 2", "page 3"]
