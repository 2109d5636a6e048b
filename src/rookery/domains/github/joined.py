"""Diffs put together from their files, kept for whoever reads them in pages: each page would ask for all files anew."""

from collections import OrderedDict

from rookery.domains.github.answers import an_object, checked, inside, line
from rookery.domains.github.client import GitHub
from rookery.domains.github.diffs import from_files

MAX_KEPT = 8
MAX_CHARACTERS = 4_000_000

# By tenant, credential, place and commits; lost with the process, since it can be put together again.
_KEPT: OrderedDict[str, str] = OrderedDict()


async def joined(github: GitHub, path: str, what: str) -> str:
    """The diff of the pull request at `path`, from its files. The same commits are not asked for again while kept."""
    pull = an_object(checked(await github.get(path), what))
    head, base = (line(inside(pull, side, "sha")) for side in ("head", "base"))
    key = github.key(path, head, base)
    if key in _KEPT:
        _KEPT.move_to_end(key)
        return _KEPT[key]
    diff = from_files(*await github.pages(f"{path}/files", {}, what))
    if head and base and len(diff) <= MAX_CHARACTERS:
        _KEPT[key] = diff
        while len(_KEPT) > MAX_KEPT:
            _KEPT.popitem(last=False)
    return diff
