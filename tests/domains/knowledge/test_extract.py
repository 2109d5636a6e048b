"""Extractors: the text of each kind of file, and a reason for what has none."""

import contextlib
import io
from collections.abc import Sequence

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from rookery.core.errors import TimedOut, ValidationFailed
from rookery.domains.knowledge import extract as module
from rookery.domains.knowledge.extract import extract, kind_of

PAGE = b"""<!doctype html><html><head><title>Tea &amp; cake</title><style>p {color: red}</style>
<script>var hidden = 1</script></head><body><nav>Home About</nav><h1>Tea</h1><p>Boil <b>water</b> &lt; 100.</p>
<h2>Code</h2><pre><code>brew()
  if x &lt; 1: pour()</code></pre><table><tr><td>green<td>80</table><p>use <code>&lt;tea&gt;</code></p></body></html>"""


def make_pdf(pages: Sequence[str], title: str | None = None, password: str | None = None) -> bytes:
    """A PDF with one line on each page."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for line in pages:
        page = writer.add_blank_page(300, 300)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({line}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)  # pyright: ignore[reportPrivateUsage]
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if title:
        writer.add_metadata({"/Title": title})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def reason(path: str, content: bytes) -> str:
    with pytest.raises(ValidationFailed) as caught:
        extract(path, content)
    assert caught.value.hint
    return caught.value.message


def test_the_kind_is_told_by_the_ending() -> None:
    names = {"a.md": "markdown", "b.HTML": "html", "c.pdf": "pdf", "d.py": "source", "e.txt": "text", "LICENSE": "text"}
    assert {name: kind_of(name) for name in names} == names


def test_what_is_no_text_says_why() -> None:
    assert reason("a.md", b"") == "a.md is empty"
    assert "has no text" in reason("a.html", b"<html><script>x</script></html>")
    assert "NUL byte at 3" in reason("a.txt", b"abc\0")
    assert "byte 0xff at 0" in reason("a.py", b"\xff")
    assert "cannot be read as a PDF" in reason("a.pdf", b"not one")
    assert "has no text" in reason("a.pdf", make_pdf([""]))
    assert "encrypted" in reason("a.pdf", make_pdf(["words"], password="secret"))
    assert "tags" in reason("a.html", b"<div>" * (module.MAX_TAGS + 1))


def test_a_pdf_with_too_many_pages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rookery.domains.knowledge.pdf_text.MAX_PAGES", 2)
    assert "3 pages, at most 2" in reason("a.pdf", make_pdf(["a", "b", "c"]))


def test_a_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TEXT", 10)
    assert "11 characters" in reason("a.txt", b"x" * 11)


@pytest.mark.parametrize("missing", [1, 50, 300, 500])
def test_a_pdf_that_is_cut_off_is_read_or_refused(missing: int) -> None:
    content = make_pdf(["words that matter"])
    with contextlib.suppress(ValidationFailed):
        assert "words" in extract("a.pdf", content[:-missing]).text


def test_markdown_and_text_keep_their_words_and_lose_their_blanks() -> None:
    found = extract("a.md", "\ufeff---\r\nx: 1\r\n---\r\n\r\n# Title #\r\n\n\n\n\n\nend   \n".encode())
    assert (found.kind, found.title, found.text) == ("markdown", "Title", "---\nx: 1\n---\n\n# Title #\n\n\nend\n")
    assert extract("notes/LICENSE", b"free").title == "LICENSE"


def test_html_becomes_markdown_without_scripts_and_menus() -> None:
    found = extract("a.html", PAGE)
    assert (found.kind, found.title) == ("html", "Tea & cake")
    assert "# Tea" in found.text
    assert "Boil **water** < 100." in found.text
    assert "```\nbrew()\n  if x < 1: pour()\n```" in found.text
    assert "green" in found.text
    assert "`<tea>`" in found.text
    assert not [word for word in ("hidden", "color", "About", "<td>", "&lt;") if word in found.text]


def test_a_pdf_is_read_page_by_page_and_can_be_stopped() -> None:
    content = make_pdf(["first page", "second page"], title="Two pages")
    found = extract("a.pdf", content)
    assert (found.title, found.text) == ("Two pages", "first page\fsecond page")

    def stop() -> None:
        raise TimedOut("stopped")

    with pytest.raises(TimedOut):
        extract("a.pdf", content, stop)
