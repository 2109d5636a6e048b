"""Which addresses a request of ours may go to: public ones, and those that the setting `outgoing_allow` names."""

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Not private by the registries, and yet answered by the host of a virtual machine, with its secrets.
_OF_HOSTS = tuple(ipaddress.ip_network(text) for text in ("168.63.129.16/32", "192.0.0.0/24"))
# An IPv4 address in the clothes of IPv6: whatever it is, it is reached by its own name as well.
_DRESSED = tuple(ipaddress.ip_network(text) for text in ("::/96", "::ffff:0:0/96", "2001::/32", "2002::/16"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether the address belongs to the internet: not to this machine, a private network, a link or a group."""
    if isinstance(address, ipaddress.IPv6Address) and address in _NAT64:
        # All that the internet of IPv4 is called in a network that has IPv6 only.
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    if any(address in network for network in (*_OF_HOSTS, *_DRESSED)):
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


class Allowed:
    """What the owner allows beyond the internet: networks such as 10.0.0.0/8, names such as ntfy.lan:8080."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._networks: list[Network] = []
        self._names: set[str] = set()
        for entry in entries:
            try:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                self._names.add(_plain(entry))

    def name(self, host: str, port: int) -> bool:
        """Whether the owner named this host, so that it may be wherever it likes; also an address as it stands."""
        bare = _plain(host)
        written = f"[{bare}]" if ":" in bare else bare
        if not self._names.isdisjoint((bare, written, f"{written}:{port}")):
            return True
        try:
            return self.address(ipaddress.ip_address(bare))
        except ValueError:
            return False

    def address(self, address: Address) -> bool:
        """Whether an allowed network has the address."""
        return any(address in network for network in self._networks)


def _plain(name: str) -> str:
    return name.lower().rstrip(".")
