"""Envelopes and keys as other libraries see them."""

import base64
import copy
import json
from typing import Any

import pytest
from algosdk import account, encoding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as OtherEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from rookery.attest.canonical import NotCanonical, canonical, read_canonical
from rookery.attest.dsse import BadEnvelope, opened, signed
from rookery.attest.keys import address_of, is_address, keyid_of, public_from
from rookery.attest.verify import STATEMENT
from tests.attest.notary import Notary

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=8,
)


def test_securesystemslib_verifies_the_same_bytes_and_refuses_others(notary: Notary) -> None:
    log = json.loads(notary.attest(55))
    key = log["key"]
    theirs = SSlibKey(key["keyid"], key["keytype"], key["scheme"], {"public": key["public"]})
    for envelope in (*log["attestations"], log["head"]):
        read: Any = OtherEnvelope.from_dict(copy.deepcopy(envelope))
        assert list(read.verify([theirs], 1)) == [key["keyid"]]
        read.payload += b" "
        with pytest.raises(VerificationError):
            read.verify([theirs], 1)


def test_another_key_another_type_or_a_changed_part_does_not_open() -> None:
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    good: Any = signed(key, STATEMENT, b"{}")
    assert opened(good, STATEMENT, key.public_key()) == b"{}"
    with pytest.raises(BadEnvelope, match="signature"):
        opened(good, STATEMENT, other.public_key())
    with pytest.raises(BadEnvelope, match="type"):
        opened(good, "another", key.public_key())
    for change in (
        {"payload": "e30"},
        {"payload": "e31="},
        {"payload": "e30=\n"},
        {"payload": 7},
        {"payload": base64.b64encode(b"[]").decode()},
        {"signatures": []},
        {"signatures": good["signatures"] * 2},
        {"signatures": [{"sig": good["signatures"][0]["sig"]}]},
        {"signatures": "none"},
        {"more": 1},
    ):
        with pytest.raises(BadEnvelope):
            opened({**good, **change}, STATEMENT, key.public_key())
    for wrong in (None, [], "x", {}):
        with pytest.raises(BadEnvelope):
            opened(wrong, STATEMENT, key.public_key())


def test_a_key_is_the_wallet_that_algorand_would_make_of_it() -> None:
    secret, theirs = account.generate_account()
    key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(secret)[:32])
    assert address_of(key.public_key()) == theirs
    assert is_address(theirs)
    assert encoding.is_valid_address(theirs)
    swapped = ("B" if theirs[0] == "A" else "A") + theirs[1:]
    for wrong in ("", "A" * 58, swapped, theirs.lower(), theirs + "A", f" {theirs}"[:58], "é" * 58):
        assert not is_address(wrong)


def test_a_public_key_is_written_in_one_way() -> None:
    public = Ed25519PrivateKey.generate().public_key()
    text = public.public_bytes_raw().hex()
    assert keyid_of(public_from(text)) == keyid_of(public)
    for wrong in ("", text[:-2], "g" * 64, "AB" * 32):
        with pytest.raises(ValueError, match=r"."):
            public_from(wrong)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values)
def test_canonical_json_is_read_as_it_was_written_and_in_no_other_form(value: Any) -> None:
    text = canonical(value)
    assert read_canonical(text) == value
    with pytest.raises(NotCanonical):
        read_canonical(text + b" ")
