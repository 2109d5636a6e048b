"""A diff in pages, and a diff put together from its files. Pure."""

import hashlib
import re

from rookery.core.errors import Conflict, InvalidParams
from rookery.domains.github.answers import Json, line

PAGE_CHARACTERS = 40_000
_CURSOR = re.compile(r"([0-9]{1,9})\.([0-9a-f]{12})")
_FILE = "\ndiff --git "


def page_of(diff: str, cursor: str | None, size: int = PAGE_CHARACTERS) -> tuple[str, str | None]:
    """The part of the diff that `cursor` asks for, and the cursor of the next; None after the last.

    It ends between two files if that leaves at least half a page, else between two lines, if there are any.
    """
    start = 0
    if cursor is not None:
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise InvalidParams("the cursor is not one of ours", hint="start again without a cursor")
        start = int(found[1])
        if found[2] != _mark(diff) or start >= len(diff):
            raise Conflict("the diff has changed since its first page", hint="start again without a cursor")
    if len(diff) - start <= size:
        return diff[start:], None
    end = diff.rfind(_FILE, start + size // 2, start + size) + 1
    end = end or diff.rfind("\n", start, start + size) + 1
    if end <= start:
        end = start + size
    return diff[start:end], f"{end}.{_mark(diff)}"


def from_files(files: list[Json], whole: bool = True) -> str:
    """The diff as the list of changed files tells it; unless `whole`, its end says that there are more.

    Of binary and of very long files GitHub gives no lines.
    """
    end = "" if whole else f"(the diff is cut here, after {len(files)} files: the pull request changes more)\n"
    return "".join(_file(each) for each in files) + end


def _file(changed: Json) -> str:
    new = line(changed.get("filename"), 4096)
    old = line(changed.get("previous_filename"), 4096) or new
    status, patch = line(changed.get("status")), changed.get("patch")
    head = f"diff --git a/{old} b/{new}\n"
    if status in ("added", "removed"):
        head += f"{'new' if status == 'added' else 'deleted'} file\n"
    if old != new:
        head += f"rename from {old}\nrename to {new}\n"
    if not isinstance(patch, str):
        counts = f"+{changed.get('additions', '?')}/-{changed.get('deletions', '?')}"
        return f"{head}(GitHub shows no lines of this file: {counts})\n"
    before = "/dev/null" if status == "added" else f"a/{old}"
    after = "/dev/null" if status == "removed" else f"b/{new}"
    # JSON can say half of a surrogate pair, which no client could be told.
    lines = patch.encode("utf-8", "replace").decode().rstrip("\n")
    return f"{head}--- {before}\n+++ {after}\n{lines}\n"


def _mark(diff: str) -> str:
    """What ties a cursor to the diff that it continues."""
    return hashlib.sha256(diff.encode(errors="surrogatepass")).hexdigest()[:12]
