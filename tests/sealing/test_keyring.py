"""The keyring: what it seals opens again in its own row, and nowhere else."""

import copy
import io
import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rookery
from rookery.core.errors import ConfigurationError, RookeryError, ValidationFailed
from rookery.sealing.keyring import FORMAT, NONCE_BYTES, TAG_BYTES, Keyring
from rookery.sealing.rotation import reseal

MASTER = bytes(range(64))
TEXT = "the password of the aviary is heron"
ROW = "memories:default:crow:7:1"
KEYRING = Keyring(MASTER)
UNICODE = st.text(st.characters(exclude_categories=["Cs"]))


def refused(keyring: Keyring, sealed: bytes, *, purpose: str = "memory", about: str = ROW) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        keyring.open(purpose, sealed, about)
    assert caught.value.hint
    return caught.value


@given(purpose=UNICODE, text=UNICODE, about=UNICODE)
def test_what_was_sealed_opens_again(purpose: str, text: str, about: str) -> None:
    sealed = KEYRING.seal(purpose, text, about)
    assert KEYRING.open(purpose, sealed, about) == text
    assert len(sealed) == len(text.encode()) + len(FORMAT) + NONCE_BYTES + TAG_BYTES


def test_a_keyring_of_the_same_secret_opens_it_in_another_process() -> None:
    sealed = KEYRING.seal("memory", TEXT, ROW)
    program = (
        "import sys; from rookery.sealing.keyring import Keyring; ring = Keyring(bytes(range(64)));"
        "print(ring.open('memory', bytes.fromhex(sys.argv[1]), sys.argv[2]), ring.fingerprint, ring.blind('w', 'crow'))"
    )
    source = str(Path(rookery.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program, sealed.hex(), ROW],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"{TEXT} {KEYRING.fingerprint} {KEYRING.blind('w', 'crow')}"


def test_the_format_does_not_change_under_those_who_have_data() -> None:
    kept = "01381ac99ef46c36d4eb1721ea7571a6612d5a97082d7380ea45c3d2a6135ba3"
    kept += "0a54bf6a73b41c9cb5bdf60aae6b0553a1647d850f0131b1ca9f59d0b1cc8d0c"
    assert KEYRING.open("memory", bytes.fromhex(kept), ROW) == TEXT
    assert KEYRING.fingerprint == "96946aa5308be879"
    assert KEYRING.blind("memory-words", "crow") == "68ecdfeb065a82c71de0"


@given(place=st.integers(0, 63), bit=st.integers(0, 7))
def test_a_changed_bit_anywhere_is_refused(place: int, bit: int) -> None:
    sealed = bytearray(KEYRING.seal("memory", TEXT, ROW))
    assert len(sealed) == 64
    sealed[place] ^= 1 << bit
    refused(KEYRING, bytes(sealed))


def test_bytes_that_were_cut_or_added_are_refused() -> None:
    sealed = KEYRING.seal("memory", TEXT, ROW)
    for length in range(len(sealed)):
        refused(KEYRING, sealed[:length])
        refused(KEYRING, sealed[length + 1 :])
    refused(KEYRING, sealed + b"\0")
    refused(KEYRING, b"")


def test_a_text_in_another_row_is_refused() -> None:
    first, second = (KEYRING.seal("memory", TEXT, f"memories:{number}") for number in (1, 2))
    refused(KEYRING, first, about="memories:2")
    refused(KEYRING, second, about="memories:1")
    refused(KEYRING, first, about="")


def test_a_text_for_another_purpose_is_refused() -> None:
    sealed = KEYRING.seal("memory", TEXT, ROW)
    refused(KEYRING, sealed, purpose="memory-key")
    refused(KEYRING, sealed, purpose="")


@pytest.mark.parametrize("other", [MASTER[:32], MASTER[::-1], MASTER + b"\0", bytes(64)])
def test_another_key_is_refused_and_told_apart(other: bytes) -> None:
    wrong = Keyring(other)
    refused(wrong, KEYRING.seal("memory", TEXT, ROW))
    assert wrong.fingerprint != KEYRING.fingerprint
    assert wrong.blind("w", "crow") != KEYRING.blind("w", "crow")


def test_every_way_of_being_wrong_is_told_alike() -> None:
    sealed = KEYRING.seal("memory", TEXT, ROW)
    first, last = bytearray(sealed), bytearray(sealed)
    first[-TAG_BYTES] ^= 1
    last[-1] ^= 1
    told = {
        refused(KEYRING, bytes(first)).message,
        refused(KEYRING, bytes(last)).message,
        refused(KEYRING, sealed, about="another row").message,
        refused(Keyring(bytes(32)), sealed).message,
    }
    assert len(told) == 1


def test_a_nonce_never_comes_twice_and_is_not_derived_from_anything() -> None:
    here = [KEYRING.seal("memory", TEXT, ROW) for _ in range(50_000)]
    assert len({sealed[1 : 1 + NONCE_BYTES] for sealed in here}) == len(here)
    # Random bytes: every place takes every value.
    assert all(len({sealed[place] for sealed in here}) == 256 for place in range(1, 1 + NONCE_BYTES))


@pytest.mark.slow
def test_a_nonce_never_comes_twice_in_a_million() -> None:
    assert len({KEYRING.seal("memory", "", ROW)[1 : 1 + NONCE_BYTES] for _ in range(1_000_000)}) == 1_000_000


def test_threads_share_a_keyring() -> None:
    fresh = Keyring(MASTER)
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(500):
            purpose, text = f"purpose-{turn % 20}", f"{number}-{turn}"
            if fresh.open(purpose, fresh.seal(purpose, text, str(turn)), str(turn)) != text:
                wrong.append(text)
            if fresh.blind(purpose, text) != KEYRING.blind(purpose, text):
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@given(text=UNICODE, other=UNICODE)
def test_a_blinded_word_is_one_plain_word_that_only_its_text_has(text: str, other: str) -> None:
    word = KEYRING.blind("memory-words", text)
    assert word == KEYRING.blind("memory-words", text)
    assert len(word) == 20
    assert set(word) <= set("0123456789abcdef")
    assert (word == KEYRING.blind("memory-words", other)) == (text == other)
    assert word != KEYRING.blind("memory-keys", text)


def test_the_fingerprint_is_of_no_use_for_anything_else() -> None:
    made = {KEYRING.blind(purpose, text) for purpose in ("", "fingerprint") for text in ("", "fingerprint")}
    assert not any(word.startswith(KEYRING.fingerprint) for word in made)
    assert KEYRING.fingerprint not in MASTER.hex()


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="31 bytes"):
        Keyring(b"x" * 31)


@pytest.mark.parametrize("call", ["text", "about", "blind", "open"])
def test_half_a_character_is_refused_without_the_text(call: str) -> None:
    half = f"{TEXT} \ud800"
    does: dict[str, Callable[[], object]] = {
        "text": lambda: KEYRING.seal("memory", half, ROW),
        "about": lambda: KEYRING.seal("memory", "", half),
        "blind": lambda: KEYRING.blind("memory", half),
        "open": lambda: KEYRING.open("memory", KEYRING.seal("memory", "", ROW), half),
    }
    with pytest.raises(ValidationFailed) as caught:
        does[call]()
    assert "heron" not in "".join(traceback.format_exception(caught.value))


def test_resealing_moves_a_text_to_the_next_key() -> None:
    new = Keyring(bytes(64))
    sealed = KEYRING.seal("memory", TEXT, ROW)
    moved = reseal(KEYRING, new, "memory", sealed, ROW)
    assert new.open("memory", moved, ROW) == TEXT
    refused(KEYRING, moved)
    with pytest.raises(ConfigurationError):
        reseal(new, KEYRING, "memory", sealed, ROW)
    with pytest.raises(ConfigurationError):
        reseal(KEYRING, new, "memory", sealed, "another row")


def test_nothing_that_is_printed_has_a_secret_in_it() -> None:
    stream, shown = io.StringIO(), ""
    logger = logging.getLogger("test_sealing")
    logger.addHandler(logging.StreamHandler(stream))
    try:
        Keyring(MASTER).open("memory", KEYRING.seal("memory", TEXT, ROW), "another row")
    except RookeryError as error:
        logger.exception("keyring %s %r", KEYRING, KEYRING)
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        shown = "".join(told.format()) + stream.getvalue() + repr(error.as_dict())
    shown += repr(KEYRING) + str(KEYRING) + f"{KEYRING}" + repr([KEYRING])
    secrets = [TEXT, "heron", MASTER.hex(), repr(MASTER), repr(MASTER[:16])[2:-1]]
    # What is derived is as secret as the master.
    secrets += [
        form
        for value in (KEYRING._root, KEYRING._blinding.get("memory", b"?" * 9))  # pyright: ignore[reportPrivateUsage]
        for form in (value.hex(), repr(value)[2:-1])
    ]
    assert [secret for secret in secrets if secret in shown] == []
    assert KEYRING.fingerprint in shown


def test_a_keyring_cannot_be_written_down() -> None:
    for attempt in (lambda: pickle.dumps(KEYRING), lambda: copy.deepcopy(KEYRING), lambda: copy.copy(KEYRING)):
        with pytest.raises(TypeError, match="stays in its process"):
            attempt()
    assert not hasattr(KEYRING, "__dict__")
