"""The values of plugins: who sees them, how long they last, and what is refused."""

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import ConfigurationError, InvalidParams, RookeryError, ValidationFailed
from rookery.core.pages import encode_cursor
from rookery.core.storage import Storage
from rookery.db import storage
from rookery.db.database import Database, open_database
from rookery.db.migrate import migrate
from rookery.db.storage import MAX_VALUE_BYTES, SWEEP, TableStorage
from rookery.db.tx import Tx


class Clock:
    """Milliseconds that pass when the test says so."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


class Keeper:
    """One plugin of one tenant: each method is a transaction of its own."""

    def __init__(self, database: Database, clock: Clock, tenant: str, domain: str) -> None:
        self._database, self._clock, self._who = database, clock, (tenant, domain)

    def open(self, tx: Tx, writable: bool = True) -> Storage:
        return TableStorage(tx, *self._who, writable=writable, clock=self._clock)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *given, **named: self._database.direct(
            lambda tx: getattr(self.open(tx), method)(*given, **named), write=True
        )


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with contextlib.closing(open_database(database_url)) as opened:
        migrate(opened, {"storage": storage.MIGRATIONS}, None)
        yield opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keeper(database: Database, clock: Clock) -> Callable[..., Any]:
    """Makes plugins: `keeper("acme", "notes")`."""
    return lambda tenant="acme", domain="notes": Keeper(database, clock, tenant, domain)


def rows(database: Database) -> int:
    return database.direct(lambda tx: tx.scalar(sa.select(sa.func.count()).select_from(storage.kept)))


@pytest.mark.parametrize(
    "value",
    [None, False, 0, -1.5, "", "ä\x00\ud800'\"", [], {}, {"a": [1, {"b": None}]}, 2**80],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(keeper: Any, value: Any) -> None:
    keeper().set("k", value)
    assert keeper().get("k", "nothing") == value
    assert keeper().list().keys == ["k"]


def test_a_key_without_a_value_gives_what_was_asked_for(keeper: Any) -> None:
    assert keeper().get("k") is None
    assert keeper().get("k", 7) == 7
    assert keeper().delete("k") is False


def test_setting_again_replaces_and_deleting_forgets(keeper: Any) -> None:
    keeper().set("k", 1)
    keeper().set("k", 2)
    assert keeper().get("k") == 2
    assert keeper().delete("k") is True
    assert keeper().delete("k") is False
    assert keeper().get("k") is None


@pytest.mark.parametrize("other", [("acme", "weather"), ("zeta", "notes"), ("acm", "enotes")])
def test_another_tenant_and_another_plugin_see_nothing(keeper: Any, other: tuple[str, str]) -> None:
    keeper().set("k", "mine")
    stranger = keeper(*other)
    assert stranger.get("k") is None
    assert stranger.get_many(["k"]) == {}
    assert stranger.list().keys == []
    assert stranger.delete("k") is False
    stranger.set("k", "theirs")
    assert stranger.delete_many(["k"]) == 1
    assert keeper().get("k") == "mine"


def test_many_keys_at_once(keeper: Any) -> None:
    keeper().set_many({"a": 1, "b": 2, "c": 3})
    assert keeper().get_many(["a", "c", "d"]) == {"a": 1, "c": 3}
    assert keeper().delete_many(["a", "d", "a"]) == 1
    assert keeper().get_many([]) == {}
    assert keeper().delete_many([]) == 0
    keeper().set_many({})
    assert keeper().list().keys == ["b", "c"]


def test_keys_are_listed_by_prefix_in_the_order_of_their_bytes(keeper: Any) -> None:
    names = ["a", "A", "a/", "a/b", "a_b", "a-b", "a.b", "ab", "b", "aZ", "a0", "B/x", "_", "-", "z" * 1024]
    keeper().set_many(dict.fromkeys(names, 0))
    keeper("zeta").set_many(dict.fromkeys(names, 0))
    assert keeper().list().keys == sorted(names)
    for prefix in ("a", "A", "a/", "a_", "z", "q", ".", "a/b", "z" * 512):
        assert keeper().list(prefix).keys == sorted(name for name in names if name.startswith(prefix))


def test_pages_follow_each_other_without_gap_or_repetition(keeper: Any) -> None:
    names = [f"n/{number:03d}" for number in range(25)]
    keeper().set_many(dict.fromkeys([*names, "m", "o"], 0))
    seen: list[str] = []
    sizes: list[int] = []
    cursor = None
    while cursor is not None or not sizes:
        page = keeper().list("n/", limit=10, cursor=cursor)
        seen += page.keys
        sizes.append(len(page.keys))
        cursor = page.cursor
    assert (seen, sizes) == (names, [10, 10, 5])
    assert keeper().list("n/", limit=25).cursor is None


def test_a_page_continues_though_its_last_key_is_gone(keeper: Any) -> None:
    keeper().set_many(dict.fromkeys("abc", 0))
    page = keeper().list(limit=1)
    keeper().delete("a")
    assert keeper().list(cursor=page.cursor).keys == ["b", "c"]


def test_the_cursor_of_another_list_is_refused(keeper: Any) -> None:
    for who in (keeper(), keeper("zeta"), keeper("acme", "weather")):
        who.set_many({"n/1": 0, "n/2": 0})
    cursor = keeper().list("n/", limit=1).cursor
    assert keeper().list("n/", cursor=cursor).keys == ["n/2"]
    for who, prefix in ((keeper("zeta"), "n/"), (keeper("acme", "weather"), "n/"), (keeper(), "n"), (keeper(), "")):
        with pytest.raises(InvalidParams, match="another list"):
            who.list(prefix, cursor=cursor)
    for nonsense in ("", "x", "💥", encode_cursor("n/1"), encode_cursor(":n/1"), cursor[:-2]):
        with pytest.raises(InvalidParams, match="cursor"):
            keeper().list("n/", cursor=nonsense)


def test_a_value_is_over_at_its_time_and_not_before(keeper: Any, clock: Clock) -> None:
    keeper().set("k", 1, ttl_s=1.5)
    clock.ms += 1499
    assert keeper().get("k") == 1
    assert keeper().list().keys == ["k"]
    clock.ms += 1
    assert keeper().get("k") is None
    assert keeper().get_many(["k"]) == {}
    assert keeper().list().keys == []
    assert keeper().delete("k") is False


def test_a_time_to_live_of_nothing_is_gone_at_once(keeper: Any, database: Database) -> None:
    keeper().set("k", 1)
    keeper().set("k", 2, ttl_s=0)
    assert keeper().get("k") is None
    assert rows(database) == 0


def test_setting_again_gives_a_new_life(keeper: Any, clock: Clock) -> None:
    keeper().set_many({"a": 1, "b": 1}, ttl_s=1)
    keeper().set("a", 2)
    keeper().set("b", 2, ttl_s=10)
    clock.ms += 5000
    assert keeper().get_many(["a", "b"]) == {"a": 2, "b": 2}
    clock.ms += 10**15
    assert keeper().get_many(["a", "b"]) == {"a": 2}


@pytest.mark.parametrize("ttl_s", [1e-9, 1e300])
def test_very_short_and_very_long_lives_are_lives(keeper: Any, ttl_s: float) -> None:
    keeper().set("k", 1, ttl_s=ttl_s)
    assert keeper().get("k") == 1


def test_writes_remove_what_is_over_a_part_at_a_time(keeper: Any, clock: Clock, database: Database) -> None:
    keeper("zeta", "weather").set_many({f"k{number}": 0 for number in range(SWEEP + 50)}, ttl_s=1)
    keeper().set("other", 1, ttl_s=100)
    clock.ms += 1000
    assert rows(database) == SWEEP + 51
    keeper().get("other")
    assert rows(database) == SWEEP + 51
    keeper().set("k", 1)
    assert rows(database) == 52
    keeper().delete("k")
    assert rows(database) == 1
    assert keeper().get("other") == 1


WRONG_KEYS = ["..", "a/../b", "a..b", "a b", "ä", "a\n", "\n", "a\\b", "a%", "a*", "a\x00", "a" * 1025]


@pytest.mark.parametrize("key", ["", *WRONG_KEYS], ids=lambda key: repr(key[:8]))
def test_a_key_outside_the_limits_is_refused(keeper: Any, key: str) -> None:
    for method, given in (
        ("get", (key,)),
        ("set", (key, 1)),
        ("delete", (key,)),
        ("get_many", (["fine", key],)),
        ("set_many", ({"fine": 1, key: 1},)),
        ("delete_many", (["fine", key],)),
    ):
        with pytest.raises(ValidationFailed):
            getattr(keeper(), method)(*given)
    assert keeper().list().keys == []


@pytest.mark.parametrize("prefix", [*WRONG_KEYS, "b" * 513], ids=lambda prefix: repr(prefix[:8]))
def test_a_prefix_outside_the_limits_is_refused(keeper: Any, prefix: str) -> None:
    with pytest.raises(ValidationFailed, match="prefix"):
        keeper().list(prefix)


@pytest.mark.parametrize("key", ["a", "a/b", "/", "a.b", "-", ".", "a/./b", "x" * 1024], ids=lambda key: key[:5])
def test_a_key_at_the_limits_is_taken(keeper: Any, key: str) -> None:
    keeper().set(key, 1)
    assert keeper().get(key) == 1


@pytest.mark.parametrize("limit", [0, -1, 10_001])
def test_a_page_outside_the_limits_is_refused(keeper: Any, limit: int) -> None:
    with pytest.raises(ValidationFailed, match="limit"):
        keeper().list(limit=limit)


def test_a_page_holds_a_thousand_unless_told_otherwise_and_ten_thousand_at_most(keeper: Any) -> None:
    for thousand in range(11):
        keeper().set_many({f"{thousand:02d}{number:03d}": 0 for number in range(1000)})
    assert len(keeper().list().keys) == 1000
    page = keeper().list(limit=10_000)
    assert len(page.keys) == 10_000
    assert len(keeper().list(limit=10_000, cursor=page.cursor).keys) == 1000


@pytest.mark.parametrize("ttl_s", [-1, -0.001, math.inf, -math.inf, math.nan])
def test_a_time_to_live_that_cannot_be_is_refused(keeper: Any, ttl_s: float) -> None:
    with pytest.raises(ValidationFailed, match="time to live"):
        keeper().set("k", 1, ttl_s=ttl_s)
    assert keeper().get("k") is None


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    ["x" * (MAX_VALUE_BYTES - 1), "ä" * (MAX_VALUE_BYTES // 6 + 1), math.nan, math.inf, {1, 2}, b"bytes", deep()],
    ids=["long", "long in bytes", "nan", "inf", "set", "bytes", "deep"],
)
def test_a_value_that_json_cannot_say_or_that_is_too_long_is_refused(keeper: Any, value: Any) -> None:
    keeper().set("k", "before")
    with pytest.raises(ValidationFailed, match="the value of k"):
        keeper().set("k", value)
    assert keeper().get("k") == "before"


def test_the_longest_value_is_taken(keeper: Any) -> None:
    keeper().set("k", "x" * (MAX_VALUE_BYTES - 2))
    assert len(keeper().get("k")) == MAX_VALUE_BYTES - 2


def test_more_than_a_thousand_keys_at_once_are_refused(keeper: Any) -> None:
    many = {f"k{number}": 0 for number in range(1001)}
    for method, given in (("get_many", many), ("set_many", many), ("delete_many", many)):
        with pytest.raises(ValidationFailed, match="too many"):
            getattr(keeper(), method)(given)


def test_a_handler_that_only_reads_can_look_and_not_change(keeper: Any, database: Database) -> None:
    keeper().set("k", 1)

    def look(tx: Tx) -> None:
        storage = keeper().open(tx, writable=False)
        assert (storage.get("k"), storage.list().keys) == (1, ["k"])
        for change in (lambda: storage.set("k", 2), lambda: storage.delete("k"), lambda: storage.set("k", 2, 0)):
            with pytest.raises(ConfigurationError, match="only reads"):
                change()

    database.direct(look)
    assert keeper().get("k") == 1


async def test_a_transaction_that_fails_leaves_nothing_behind(keeper: Any, database: Database) -> None:
    keeper().set_many({"a": 1, "b": 1})

    def work(tx: Tx) -> None:
        storage = keeper().open(tx)
        storage.set("a", 2)
        storage.delete("b")
        storage.set("c", 2)
        raise RookeryError("and no further")

    with pytest.raises(RookeryError, match="no further"):
        await database.change(work)
    assert keeper().get_many("abc") == {"a": 1, "b": 1}


async def test_of_many_that_set_one_key_at_once_one_is_last(keeper: Any, database: Database) -> None:
    def set_to(number: int) -> Callable[[Tx], None]:
        return lambda tx: keeper().open(tx).set("k", [number] * 100)

    await asyncio.gather(*(database.change(set_to(number)) for number in range(50)))
    assert keeper().get("k") in [[number] * 100 for number in range(50)]
    assert keeper().list().keys == ["k"]


async def test_of_many_that_count_up_at_once_none_is_lost(keeper: Any, database: Database) -> None:
    def count(tx: Tx) -> None:
        storage = keeper().open(tx)
        storage.set("n", storage.get("n", 0) + 1)

    await asyncio.gather(*(database.change(count) for _ in range(40)))
    assert keeper().get("n") == 40


async def test_many_that_change_two_keys_in_either_order_all_come_through(keeper: Any, database: Database) -> None:
    def count(first: str, second: str) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            storage = keeper().open(tx)
            for key in (first, second):
                storage.set(key, storage.get(key, 0) + 1, ttl_s=1000)

        return work

    pairs = [("a", "b"), ("b", "a")] * 10
    await asyncio.gather(*(database.change(count(*pair)) for pair in pairs))
    assert keeper().get_many("ab") == {"a": 20, "b": 20}


async def test_what_only_reads_does_not_wait_for_a_writer(keeper: Any, database: Database) -> None:
    keeper().set("k", "before")
    writing, read = threading.Event(), threading.Event()

    def write(tx: Tx) -> None:
        keeper().open(tx).set("k", "after")
        writing.set()
        assert read.wait(30)

    def look(tx: Tx) -> Any:
        assert writing.wait(30)
        return keeper().open(tx).get("k")

    change = asyncio.create_task(database.change(write))
    try:
        assert await asyncio.wait_for(database.read(look), 30) == "before"
    finally:
        read.set()
        await change
    assert keeper().get("k") == "after"
