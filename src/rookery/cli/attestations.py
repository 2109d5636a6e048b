"""`rookery verify-attestation`: check what an agent attests, without a server, a database or trust in anybody."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from rookery.cli.show import cell, print_json
from rookery.core.errors import ConfigurationError, ServiceUnavailable, ValidationFailed

if TYPE_CHECKING:
    from rookery.attest.verify import Head, Verified

MAX_BYTES = 64 * 1024 * 1024
_HEAD = re.compile(r"([0-9]{1,12}):([0-9a-f]{64})")


@click.command("verify-attestation")
@click.argument("file_or_url")
@click.option("--key", "keyid", metavar="KEYID", help="The id of the key that it must be signed with.")
@click.option("--head", metavar="COUNT:HASH", help="A head that was printed before; the log must still go through it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify_attestation(file_or_url: str, keyid: str | None, head: str | None, as_json: bool) -> None:
    """Verify a log of attestations, from a file or an address; exit with 1 if it does not hold.

    Keep the printed key and head and give them the next time: then neither can the key be replaced nor the log be cut
    unnoticed.
    """
    from rookery.attest.verify import verify_log

    seen = None if head is None else _head(head)
    found = verify_log(_document(file_or_url), keyid=None if keyid is None else keyid.lower(), seen=seen)
    if as_json:
        print_json(_as_json(found))
    elif found.fault is None:
        _print_good(found)
    if found.fault is not None:
        if not as_json:
            click.echo(f"It does not hold ({found.fault}): {cell(found.why)}.", err=True)
        sys.exit(1)


def _head(text: str) -> "Head":
    from rookery.attest.verify import Head

    parts = _HEAD.fullmatch(text.strip().lower())
    if parts is None:
        raise ValidationFailed(f"{text!r} is no head", hint="it is a number, a colon and 64 hexadecimal digits")
    return Head(int(parts[1]), parts[2])


def _document(file_or_url: str) -> bytes:
    if re.match(r"https?://", file_or_url):
        import asyncio

        return asyncio.run(_fetched(file_or_url))
    # By reading, not by its size: what is no file, such as /dev/zero, has none.
    with Path(file_or_url).open("rb") as file:
        document = file.read(MAX_BYTES + 1)
    if len(document) > MAX_BYTES:
        raise ConfigurationError(f"{file_or_url} is no log: it has more than {MAX_BYTES} bytes")
    return document


async def _fetched(url: str) -> bytes:
    from rookery.outgoing.client import GuardedClient

    # Whoever types an address means it, also on this machine; where it sends on to is another's word.
    client = GuardedClient((urlsplit(url).netloc,))
    address = url if url.endswith(".json") else f"{url.rstrip('/')}/log.json"
    answer = await client.request("GET", address, timeout_s=60, max_bytes=MAX_BYTES, plain=True)
    if not answer.ok:
        raise ServiceUnavailable(f"the host answered with {answer.status}", hint="is this the address of a log?")
    return answer.body


def _as_json(found: "Verified") -> dict[str, Any]:
    return {
        "verified": found.fault is None,
        "agent_id": found.agent_id,
        "keyid": found.keyid,
        "count": found.count,
        "level": found.level,
        "head": None if found.head is None else f"{found.head.count}:{found.head.hash}",
        "attestations": found.newest,
        "fault": found.fault,
        "why": found.why,
    }


def _print_good(found: "Verified") -> None:
    many = "1 attestation" if found.count == 1 else f"{found.count} attestations"
    click.echo(f"The log of {cell(found.agent_id)} holds: {many}, level {found.level}.")
    click.echo(f"key:  {found.keyid}")
    if found.head is not None:
        click.echo(f"head: {found.head.count}:{found.head.hash}")
    for each in found.newest:
        at, score, trust = (cell(each[name]) for name in ("computedAt", "overallScore", "trustLevel"))
        click.echo(f"{at}  {score}/100 {trust}  {each['hash']}")
