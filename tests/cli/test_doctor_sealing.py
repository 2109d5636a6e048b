"""What `rookery doctor` says of the key that seals memories, and of memories that do not go with it."""

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rookery.cli.doctor import examine
from rookery.cli.machine import Machine
from rookery.core.errors import ConfigurationError
from rookery.db.database import open_database
from rookery.db.tx import Tx
from rookery.domains.memory.file_tables import memory_files
from rookery.sealing.key_table import current_version
from rookery.sealing.keyring import Keyring, load_keyring
from rookery.settings import Settings
from tests.cli.examined import WORDS, change, expect, sound_machine, with_settings
from tests.cli.terminal import Terminal


@pytest.fixture
def machine(terminal: Terminal) -> Machine:
    return sound_machine(terminal)


@pytest.fixture
def storing(terminal_on: Terminal) -> Machine:
    """A sound machine whose database is SQLite, and the test again with PostgreSQL."""
    return sound_machine(terminal_on)


def test_memories_without_a_key_are_noted_and_a_problem_where_they_cannot_be_saved(machine: Machine) -> None:
    expect(with_settings(machine, mnemonic=""), "mnemonic", "note", "unencrypted", "ROOKERY_MNEMONIC", "key_file")
    outside = with_settings(machine, mnemonic="", network="main")
    expect(outside, "mnemonic", "problem", "on the network main no memory can be saved")
    expect(with_settings(machine, network="main"), "mnemonic", "ok", "made from the mnemonic")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("legal winner", "2 words"),
        (WORDS.replace("yellow", "year"), "wrong checksum"),
        (WORDS.replace("yellow", "yelow"), "no BIP-39 list (word 12)"),
        ("abandon " * 11 + "about", "can be guessed"),
    ],
)
def test_words_that_are_wrong_are_a_problem_and_not_repeated(machine: Machine, words: str, said: str) -> None:
    broken = with_settings(machine, mnemonic=words)
    expect(broken, "mnemonic", "problem", said)
    told = " ".join(
        f"{found.sentence} {found.mend}" for found in examine(broken) if found.check in ("mnemonic", "sealing")
    )
    assert [word for word in {*words.split()} if re.search(rf"\b{word}\b", told)] == []


def test_a_key_file_is_as_good_as_words_if_nobody_else_can_read_it(machine: Machine) -> None:
    path = Path(machine.settings.home) / "rookery.key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    keyed = with_settings(machine, mnemonic="", key_file=str(path))
    expect(keyed, "mnemonic", "ok", "made from the key file")
    expect(with_settings(machine, key_file=str(path)), "mnemonic", "problem", "both set")
    path.chmod(0o644)
    expect(keyed, "mnemonic", "problem", "mode 644", f"chmod 600 {path}")


def test_a_key_is_not_judged_while_the_settings_cannot_be_read(machine: Machine) -> None:
    broken = replace(machine, settings=Settings(home=machine.settings.home), settings_error=ConfigurationError("no"))
    expect(broken, "mnemonic", "note", "settings")


def seal_rows(machine: Machine, keyring: Keyring | None, count: int) -> None:
    """Memory files that this key has sealed, or none."""

    def add(tx: Tx) -> None:
        version = current_version(tx, keyring) if keyring else None
        row = {"tenant": "default", "scope_slug": "_global", "profile": "crow", "filename": "x.md", "content": b"x"}
        row |= {"key_version": version, "author": "crow", "updated_ms": 0}
        tx.run(memory_files.insert(), [{**row, "folded": f"{version}-{number}"} for number in range(count)])

    with closing(open_database(machine.settings.database_url)) as database:
        database.direct(add, write=True)


@pytest.fixture
def keyring(storing: Machine) -> Keyring:
    found = load_keyring(storing.settings)
    assert found
    return found


def test_memories_sealed_with_the_key_that_is_set_are_fine(storing: Machine, keyring: Keyring) -> None:
    expect(storing, "sealing", "ok", "0 memories are sealed, 0 are in plain text")
    seal_rows(storing, keyring, 3)
    expect(storing, "sealing", "ok", "3 memories are sealed, 0 are in plain text")


def test_plain_memories_are_fine_without_a_key_and_noted_with_one(storing: Machine) -> None:
    seal_rows(storing, None, 2)
    expect(with_settings(storing, mnemonic=""), "sealing", "ok", "0 memories are sealed, 2 are in plain text")
    expect(storing, "sealing", "note", "2 memories are in plain text", "rotate-key")


def test_sealed_memories_without_a_key_are_a_problem(storing: Machine, keyring: Keyring) -> None:
    seal_rows(storing, keyring, 2)
    keyless = with_settings(storing, mnemonic="")
    expect(keyless, "sealing", "problem", "2 memories", keyring.fingerprint, "no key is set", "key_file")


def test_a_wrong_key_is_told_from_a_rotation_that_stopped(storing: Machine, keyring: Keyring) -> None:
    old = Keyring(bytes(range(32)))
    seal_rows(storing, old, 2)
    expect(storing, "sealing", "problem", "The key is the wrong one", old.fingerprint)
    seal_rows(storing, keyring, 1)
    expect(storing, "sealing", "problem", "2 memories are still sealed with", old.fingerprint, "goes on")


def test_seals_are_not_looked_at_without_a_database_or_with_a_broken_key(machine: Machine, tmp_path: Path) -> None:
    expect(with_settings(machine, home=str(tmp_path / "nowhere")), "sealing", "ok", "Not looked at")
    expect(with_settings(machine, mnemonic="crow"), "sealing", "ok", "Not looked at")


def test_seals_of_an_older_schema_are_not_missed(machine: Machine) -> None:
    change(machine, "DROP TABLE seal_keys")
    expect(machine, "sealing", "ok", "0 memories are sealed")
