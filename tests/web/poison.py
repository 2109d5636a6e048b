"""Texts that try to become more than text, written into every column of the database that holds words of others."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import sqlalchemy as sa

from rookery.db.schema import metadata
from rookery.db.tx import Tx

MARK = "hOsTiLe"
POISON = (
    f"{MARK} \"'><script>window.pwned=1</script><img src=x onerror=window.pwned=2><svg/onload=window.pwned=3>"
    "</textarea></title></script><pwned-tag autofocus onfocus=window.pwned=4 tabindex=1>{{7*7}}{% raw %}${7*7}"
    "[click](javascript:window.pwned=5) ![x](https://evil.example/x.png) <https://evil.example/> <a href=javascript:1>"
    "\x1b[31mred\x1b]0;title\x07 \u202eturned\u202c \u2066isolated\u2069 \x08\x7f "
)
LONG = POISON + "W" * 300 + " " + "many words " * 450_000
"""Five megabytes, with one word that no line can hold."""
FREE = frozenset(
    re.findall(
        r"\w+",
        """
        answer author branch branch_name command content context cwd description device error file_path heading
        fix_instructions from_name label lease_name message model note notes output path pattern problems program
        prompt question reason reference response result skill summary text title to_name sender_name why name
        applies_to options risk_reasons details input said progress url pr_url payload steps stats requester
        ticket_id concept
        """,
    )
)
"""Columns that hold what agents or people wrote. Keys, states and hashes are ours, and checked when they come in."""
ALSO = {("audit_log", name) for name in ("tool", "request", "source", "session")}
"""Columns in which callers name something themselves, and that are called like some of ours."""
KEPT = {("agents", "name"), ("people", "name"), ("server_keys", "name"), ("orchestrator_leaders", "name")}
"""Names that a pattern holds to letters, by which pages and tools find things."""
STRUCTURE = frozenset(
    ("type", "kind", "status", "state", "tool", "name", "id", "subtype", "phase", "role", "verdict", "level", "outcome")
)
FORBIDDEN = ("\x1b", "\x07", "\x08", "\x7f", "\u202e", "\u202c", "\u2066", "\u2069")


def poisoned(value: Any, words: str, key: str = "") -> Any:
    """A JSON value with every text in it replaced that is no name of ours."""
    if isinstance(value, dict):
        return {name: poisoned(inner, words, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner, words, key) for inner in value]
    ours = key in STRUCTURE or key.endswith(("_id", "_ms", "_at", "Id")) or not isinstance(value, str)
    return value if ours else words


def poison(tx: Tx, words: str) -> int:
    """Replace what stands in every column of words, in one row by all of `words` and in the others by their beginning;
    how many columns had something in them."""
    touched = 0
    _let_rows_be_changed(tx)
    for table in metadata.sorted_tables:
        for column in table.columns:
            named = (table.name, column.name)
            if (column.name not in FREE and named not in ALSO) or named in KEPT or column.primary_key:
                continue
            if not tx.scalar(sa.select(sa.func.count()).select_from(table).where(column.is_not(None))):
                continue
            touched += 1
            if isinstance(column.type, sa.Text | sa.String):
                _texts(tx, table, column, words)
            else:
                _values(tx, table, column, words)
    return touched


def _let_rows_be_changed(tx: Tx) -> None:
    """What is only ever added to is guarded by triggers: who wrote into the file by hand would have passed them too."""
    if tx.dialect == "sqlite":
        names = tx.all(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'"))
        for (name,) in names:
            tx.run(sa.text(f'DROP TRIGGER "{name}"'))
    else:
        for table in metadata.sorted_tables:
            tx.run(sa.text(f"ALTER TABLE {table.name} DISABLE TRIGGER USER"))


def _texts(tx: Tx, table: sa.Table, column: sa.Column[Any], words: str) -> None:
    keys = (key for key in table.constraints if isinstance(key, sa.UniqueConstraint))
    unique = any(column.name in {each.name for each in key.columns} for key in keys)
    if table.name == "prs" and column.name == "diff":
        return
    value: Any = sa.literal(POISON) + table.c.id if unique and "id" in table.c else POISON
    with tx.savepoint():
        tx.run(sa.update(table).where(column.is_not(None)).values({column.name: value}))
    if unique:
        return
    keys = list(table.primary_key.columns)
    newest = tx.one(sa.select(*keys).where(column.is_not(None)).order_by(*(key.desc() for key in keys)).limit(1))
    if newest is not None:
        mine = [key == getattr(newest, key.name) for key in keys]
        tx.run(sa.update(table).where(*mine).values({column.name: words}))


def _values(tx: Tx, table: sa.Table, column: sa.Column[Any], words: str) -> None:
    keys = list(table.primary_key.columns)
    for row in tx.all(sa.select(*keys, column.label("poisoned_value")).where(column.is_not(None))):
        found = json.loads(row.poisoned_value) if isinstance(row.poisoned_value, str) else row.poisoned_value
        mine = [key == getattr(row, key.name) for key in keys]
        tx.run(sa.update(table).where(*mine).values({column.name: poisoned(found, words[:20_000])}))


class Looked(HTMLParser):
    """What a page is made of: the links to our own pages, and everything that should not be there."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.wrong: list[str] = [f"{each!r} as it is" for each in FORBIDDEN if each in page]
        self.said = MARK in page
        self.whole = '<main id="content"' in page
        self._script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "pwned-tag":
            self.wrong.append("a tag of the text")
        self.wrong += [f"<{tag} {name}>" for name in given if name.startswith("on") or name in ("style", "srcdoc")]
        if tag == "script" and not given.get("src") and given.get("type") != "application/json":
            self.wrong.append("a script without a file")
        for name in ("href", "src", "action", "formaction", "hx-get", "hx-post", "data"):
            address = given.get(name, "").strip().lower()
            if address.startswith(("javascript:", "data:", "vbscript:")):
                self.wrong.append(f"<{tag} {name}={address[:40]}>")
            if tag in ("img", "iframe", "script", "link", "object", "embed") and "//" in address:
                self.wrong.append(f"<{tag} {name}={address[:40]}>: a request to another host")
        if tag == "a" and given.get("href", "").startswith("/"):
            self.links.append(given["href"])
