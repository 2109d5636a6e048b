"""The text of an HTML page as Markdown, so that its headings and code are seen as such."""

import html
import re

from justhtml import JustHTML

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
# Tags that Markdown has no words for are left as they were, but not those inside of `code`.
_CODE_OR_TAG = re.compile(r"(`+)[^`]+\1|</?[a-zA-Z][^<>]*>|<!--.*?-->")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")
_LEFT_OUT = "script, style, noscript, template, svg, nav"


def html_text(page: str) -> tuple[str, str]:
    """The page's title and its text. Scripts, styles and menus are left out."""
    document = JustHTML(page, sanitize=False)
    title = document.query_one("title")
    for element in document.query(_LEFT_OUT):
        if element.parent is not None:
            element.parent.remove_child(element)
    return (title.to_text() if title is not None else ""), _plain_markdown(document.to_markdown())


def _plain_markdown(markdown: str) -> str:
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1] == fence else fence
        elif mark:
            fence = mark[1]
        else:
            line = _ESCAPED.sub(r"\1", html.unescape(_CODE_OR_TAG.sub(_without_tags, line)))
        lines.append(line)
    return "\n".join(lines)


def _without_tags(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("`") else " "
