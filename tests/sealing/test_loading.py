"""Where a keyring comes from: the words of a mnemonic or a key file, and what is wrong with them."""

import os
import re
import traceback
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import ConfigurationError
from rookery.sealing.keyring import Keyring, load_keyring
from rookery.settings import Settings

WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
SEALING = os.path.join("rookery", "sealing")
KEY = bytes(range(32))


def loaded(home: Path, **values: Any) -> Keyring:
    keyring = load_keyring(Settings(home=str(home), **values))
    assert keyring is not None
    return keyring


def fault(home: Path, **values: Any) -> str:
    """The sentence and the hint, after a look that neither tells the words or the key."""
    with pytest.raises(ConfigurationError) as caught:
        load_keyring(Settings(home=str(home), **values))
    assert caught.value.hint
    whole = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [frame for frame in whole.stack if SEALING in frame.filename]
    told = f"{whole.__cause__}{[frame.locals for frame in ours]}{caught.value.as_dict()}"
    assert ours
    assert [word for word in values.get("mnemonic", "").split() if re.search(rf"\b{word}\b", told)] == []
    return f"{caught.value.message} -> {caught.value.hint}"


def key_file(home: Path, content: bytes = KEY, mode: int = 0o600) -> str:
    path = home / "rookery.key"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("nothing", ["", "   ", "\n\t"])
def test_without_words_and_without_a_file_there_is_no_keyring(tmp_path: Path, nothing: str) -> None:
    assert load_keyring(Settings(home=str(tmp_path), mnemonic=nothing)) is None


def test_words_make_the_same_keyring_every_time(tmp_path: Path) -> None:
    sealed = loaded(tmp_path, mnemonic=WORDS).seal("memory", "heron", "row")
    assert loaded(tmp_path, mnemonic=f"  {WORDS.upper()}\n").open("memory", sealed, "row") == "heron"


def test_a_wrong_checksum_is_said_without_the_words(tmp_path: Path) -> None:
    swapped = "winner legal thank year wave sausage worth useful legal winner thank yellow"
    assert "wrong checksum" in fault(tmp_path, mnemonic=swapped)


def test_a_word_that_is_in_no_list_is_told_by_its_place(tmp_path: Path) -> None:
    said = fault(tmp_path, mnemonic=WORDS.replace("sausage", "sausages").replace("yellow", "yelow"))
    assert "(word 6, 12)" in said


@pytest.mark.parametrize("count", [1, 11, 13, 14, 16, 23, 25, 48])
def test_another_number_of_words_is_refused(tmp_path: Path, count: int) -> None:
    assert f"has {count} word" in fault(tmp_path, mnemonic=" ".join((WORDS.split() * 4)[:count]))


def test_words_and_a_file_together_are_refused(tmp_path: Path) -> None:
    assert "both set" in fault(tmp_path, mnemonic=WORDS, key_file=key_file(tmp_path))
    # Whether or not either is any good.
    assert "both set" in fault(tmp_path, mnemonic="crow", key_file="nowhere")


def test_a_key_file_makes_a_keyring_of_all_its_bytes(tmp_path: Path) -> None:
    keyring = loaded(tmp_path, key_file=key_file(tmp_path))
    assert keyring.fingerprint == Keyring(KEY).fingerprint
    assert loaded(tmp_path, key_file=key_file(tmp_path, KEY + b"\n")).fingerprint != keyring.fingerprint


def test_a_key_file_may_be_named_from_the_home_or_from_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_file(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    for name in ("rookery.key", "~/rookery.key", "./rookery.key", str(tmp_path / "rookery.key")):
        assert loaded(tmp_path, key_file=name).fingerprint == Keyring(KEY).fingerprint


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o666, 0o610, 0o601, 0o777])
def test_a_key_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = key_file(tmp_path, mode=mode)
    said = fault(tmp_path, key_file=path)
    assert f"mode {mode:o}" in said
    assert f"chmod 600 {path}" in said


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_file_of_the_user_alone_is_taken(tmp_path: Path, mode: int) -> None:
    assert loaded(tmp_path, key_file=key_file(tmp_path, mode=mode))


@pytest.mark.parametrize("size", [0, 1, 16, 31])
def test_a_key_file_that_is_too_short_is_refused(tmp_path: Path, size: int) -> None:
    assert f"has {size} bytes" in fault(tmp_path, key_file=key_file(tmp_path, KEY[:size]))


def test_a_key_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert loaded(tmp_path, key_file=key_file(tmp_path, KEY * 2048))
    assert "no key" in fault(tmp_path, key_file=key_file(tmp_path, KEY * 2048 + b"x"))


@pytest.mark.parametrize("content", [bytes(64), b"secret!" * 20])
def test_a_key_file_that_is_not_random_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "not random" in fault(tmp_path, key_file=key_file(tmp_path, content))


def test_a_key_written_as_text_is_random_enough(tmp_path: Path) -> None:
    for _ in range(200):
        assert loaded(tmp_path, key_file=key_file(tmp_path, os.urandom(32).hex().encode() + b"\n"))


def test_a_key_file_that_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in fault(tmp_path, key_file="nowhere.key")
    assert "no file" in fault(tmp_path, key_file=str(tmp_path))
    assert "that name" in fault(tmp_path, key_file="a\0b")
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "no file" in fault(tmp_path, key_file="pipe")
    assert "no file" in fault(tmp_path, key_file="/dev/urandom")


def test_a_key_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = key_file(tmp_path)
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, -1)
    assert "another user" in fault(tmp_path, key_file=path)


def test_a_link_to_a_key_file_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(key_file(tmp_path))
    assert loaded(tmp_path, key_file="link")
    key_file(tmp_path, mode=0o644)
    assert "mode 644" in fault(tmp_path, key_file="link")


def test_settings_never_show_the_words(tmp_path: Path) -> None:
    assert "sausage" not in repr(Settings(home=str(tmp_path), mnemonic=WORDS))
