"""Which addresses are public, and what the owner allows beyond them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.outgoing.places import Allowed, is_public

REFUSED = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "100.100.100.200", "169.254.169.254", "169.254.0.1", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1",
    "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a00:1",
    "2002:7f00:1::", "2002:808:808::", "2001:0:1::", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1",
    "ff02::1", "2001:db8::1", "100::1",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_of_the_internet_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "140.82.121.4", "2606:4700:4700::1111", "64:ff9b::808:808"])
def test_what_is_of_the_internet_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@given(st.ip_addresses(v=4))
def test_an_address_in_the_clothes_of_the_other_family_is_never_public(address: ipaddress.IPv4Address) -> None:
    for prefix in ("::ffff:", "::"):
        assert not is_public(ipaddress.ip_address(f"{prefix}{address}"))
    assert not is_public(ipaddress.IPv6Address((0x2002 << 112) | int(address) << 80))
    translated = ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | int(address))
    assert is_public(translated) == is_public(address)


@given(
    st.sampled_from(["127.0.0.0/8", "10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16", "fe80::/10", "fc00::/7"]),
    st.data(),
)
def test_no_address_of_a_private_network_is_public(network: str, data: st.DataObject) -> None:
    assert not is_public(data.draw(st.ip_addresses(network=network)))


def test_a_network_is_allowed_with_every_address_in_it() -> None:
    allowed = Allowed(["10.1.0.0/16", "::1"])
    assert allowed.address(ipaddress.ip_address("10.1.2.3"))
    assert allowed.address(ipaddress.ip_address("::1"))
    assert not allowed.address(ipaddress.ip_address("10.2.0.1"))
    assert not allowed.address(ipaddress.ip_address("::ffff:10.1.2.3"))
    assert allowed.name("10.1.2.3", 80)
    assert not allowed.name("10.1.2.3.example", 80)


def test_a_name_is_allowed_as_it_is_written_and_with_its_port_only_there() -> None:
    allowed = Allowed(["ntfy.lan", "localhost:8080", "[::1]:25"])
    assert allowed.name("NTFY.lan.", 1)
    assert allowed.name("localhost", 8080)
    assert allowed.name("::1", 25)
    assert not allowed.name("localhost", 4242)
    assert not allowed.name("::1", 26)
    assert not allowed.name("xntfy.lan", 1)
    assert not Allowed().name("localhost", 80)
