"""The headings of a Markdown text, and when two of them name the same section. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_NUMBER = re.compile(r"^\s*(\d+(\.\d+)*[.):]?|[A-Za-z][.)])\s+")
_ASIDE = re.compile(r"\([^()]*\)")
_OTHER = re.compile(r"[\W_]+")


def slug(heading: str) -> str:
    """What a section is called, whatever its case, number, punctuation, emphasis or remark in parentheses.

    `## 2. **Rollout** (incl. rollback):` and `rollout` are the same.
    """
    plain = unicodedata.normalize("NFKC", heading).casefold().replace("&", " and ")
    bare = _ASIDE.sub(" ", _NUMBER.sub("", plain.replace("*", "")))
    return _OTHER.sub("-", bare).strip("-") or _OTHER.sub("-", plain).strip("-")


def headings(markdown: str) -> list[tuple[int, str]]:
    """Level and text of every heading, in order. Those in code, quotes, lists and HTML are not headings of the text."""
    pairs = pairwise(_parser().parse(markdown))
    opened = ((head, text) for head, text in pairs if head.type == "heading_open" and head.level == 0)
    return [(int(head.tag[1:]), text.content) for head, text in opened]


def missing_sections(found: Iterable[tuple[int, str]], required: Iterable[str]) -> list[str]:
    """Those of `required` that no heading from ## to #### names, in their order."""
    present = {slug(text) for level, text in found if 2 <= level <= 4}
    return [section for section in required if slug(section) not in present]


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # Blocks are all that is needed, and without these two no text takes more than linear time.
    return MarkdownIt("commonmark").disable(["inline", "reference"])
