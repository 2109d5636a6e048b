"""The text of a PDF, page by page."""

import io
import logging
from collections.abc import Callable

from pypdf import PdfReader
from pypdf.errors import FileNotDecryptedError

from rookery.core.errors import RookeryError, ValidationFailed
from rookery.domains.knowledge.chunks import PAGE_BREAK

MAX_PAGES = 2_000
# It reports every oddity of every file, on pages that it reads all the same.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def pdf_text(path: str, content: bytes, check: Callable[[], None]) -> tuple[str, str]:
    """The title and the pages, with a page break between them. `check` may raise before each page."""
    try:
        return _read(path, content, check)
    except RookeryError:
        raise
    except FileNotDecryptedError:
        raise ValidationFailed(f"{path} is encrypted", hint="save it without a password") from None
    except Exception as error:
        # Whatever a broken file makes of the parser, the file is at fault.
        raise ValidationFailed(
            f"{path} cannot be read as a PDF: {type(error).__name__}: {str(error)[:200]}",
            hint="open it and save it again",
        ) from error


def _read(path: str, content: bytes, check: Callable[[], None]) -> tuple[str, str]:
    reader = PdfReader(io.BytesIO(content))
    count = len(reader.pages)
    if count > MAX_PAGES:
        raise ValidationFailed(f"{path} has {count} pages, at most {MAX_PAGES} are read", hint="split it")
    pages: list[str] = []
    for page in reader.pages:
        check()
        pages.append(page.extract_text().replace(PAGE_BREAK, "\n"))
    about = reader.metadata
    return str(about.title or "") if about is not None else "", PAGE_BREAK.join(pages)
