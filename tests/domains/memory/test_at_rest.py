"""What can be read in the bytes of a database, of its log of pages and of a backup, where memories are sealed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.domains.memory.rotation import rotate
from rookery.sealing.keyring import Keyring
from tests.domains.memory.minds import WORDS, Minds

KEY, CONTENT = "quetzalcoatlus plan", "The archaeopteryx project moves to Reykjavik in Novembermonth"
SAID = ("archaeopteryx", "reykjavik", "novembermonth", "archaeopteryx"[:9])


def bytes_of(minds: Minds, folder: Path) -> bytes:
    """Everything that anybody with the disk could read, in small letters."""
    database = minds.fleet.platform.database
    backup = database.backup(str(folder), "look")
    assert backup is not None
    texts = [Path(backup).read_bytes()]
    if minds.direct(lambda tx: tx.dialect) == "sqlite":
        path = sa.make_url(database.url).database or ""
        texts += [each.read_bytes() for each in Path(path).parent.glob(f"{Path(path).name}*") if each.is_file()]
    else:
        texts.append(_dump(database.url))
    # PostgreSQL writes bytes as digits.
    digits = [bytes.fromhex(found.decode()) for text in texts for found in re.findall(rb"\\x((?:[0-9a-f]{2})+)", text)]
    return b"\n".join([*texts, *digits]).lower()


def _dump(url: str) -> bytes:
    """Every row of every table, as text."""
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        rows = [row[0] for table in tables for row in connection.execute(sa.text(f'SELECT t::text FROM "{table}" t'))]
    engine.dispose()
    return "\n".join(rows).encode()


async def remember(minds: Minds) -> None:
    await minds.save(minds.ada, KEY, CONTENT)
    await minds.save(minds.ada, KEY, CONTENT + " or later")
    await minds.save(minds.ada, "short lived", CONTENT[::-1])
    await minds.fleet.call(minds.ada, "forget_memory", key="short lived")
    assert await minds.keys(minds.ada, "archaeopteryx") == [KEY]
    assert await minds.keys(minds.ada, key=KEY) == [KEY]
    assert (await minds.fleet.platform.calls.read(minds.ada, f"memory://{KEY}".replace(" ", "%20")))[0].text


async def test_a_plain_memory_can_be_read_in_the_bytes(plain_minds: Minds, tmp_path: Path) -> None:
    await remember(plain_minds)
    found = bytes_of(plain_minds, tmp_path)
    assert all(word.encode() in found for word in SAID)
    assert b"quetzalcoatlus" in found


async def test_nothing_of_a_sealed_memory_can_and_its_key_only_if_it_is_not_hidden(
    make_minds: Callable[..., Minds], tmp_path: Path
) -> None:
    minds = make_minds(mnemonic=WORDS)
    await remember(minds)
    await minds.fleet.call(minds.ada, "promote_memory", key=KEY)
    found = bytes_of(minds, tmp_path)
    assert [word for word in SAID if word.encode() in found] == []
    assert b"quetzalcoatlus" in found


async def test_of_a_memory_with_a_hidden_key_nothing_at_all_can_be_read(
    make_minds: Callable[..., Minds], tmp_path: Path
) -> None:
    minds = make_minds(mnemonic=WORDS, memory_hide_keys=True)
    await remember(minds)
    await minds.fleet.call(minds.ada, "promote_memory", key=KEY)
    found = bytes_of(minds, tmp_path)
    assert [word for word in (*SAID, "quetzalcoatl") if word.encode() in found] == []
    assert not any(word.encode() in found for word in WORDS.split() if len(word) > 5)


async def test_what_was_plain_is_gone_from_the_bytes_once_it_is_sealed(plain_minds: Minds, tmp_path: Path) -> None:
    minds = plain_minds
    await remember(minds)
    database = minds.fleet.platform.database
    rotate(database, None, Keyring(bytes(range(32))), hide_keys=True)
    found = bytes_of(minds, tmp_path)
    assert [word for word in (*SAID, "quetzalcoatl") if word.encode() in found] == []


async def test_a_row_that_is_moved_to_another_owner_does_not_open(sealed_minds: Minds) -> None:
    minds = sealed_minds
    bob = await minds.agent("bob")
    await minds.save(minds.ada, "a", "for Ada alone")
    minds.change(owner=f"agent:{bob.agent}")
    with pytest.raises(Exception, match="does not open"):
        await minds.recall(bob, key="a")
