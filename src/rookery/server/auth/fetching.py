"""What an issuer publishes, fetched with care: no redirects, no end without limit, nothing packed."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx2

from rookery.settings.addresses import is_loopback

MOST_BYTES = 512 * 1024


async def fetch(
    address: str,
    timeout_s: float,
    accept: str = "application/json",
    *,
    form: Mapping[str, str] | None = None,
    basic: tuple[str, str] | None = None,
) -> bytes:
    """What is at an address, or what it answers to a form. Any status but 200 is ValueError.

    Redirects are not followed: they would choose another issuer.
    """
    local = is_loopback(urlsplit(address).hostname or "")
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    auth = None if basic is None else httpx2.BasicAuth(*basic)
    data = None if form is None else dict(form)
    async with (
        httpx2.AsyncClient(follow_redirects=False, timeout=timeout_s, trust_env=not local, auth=auth) as client,
        client.stream("GET" if form is None else "POST", address, headers=headers, data=data) as answer,
    ):
        if answer.status_code != 200:
            raise ValueError(f"status {answer.status_code}")
        body = bytearray()
        # Raw, so that a packed answer cannot unfold into more than was counted.
        async for chunk in answer.aiter_raw():
            body += chunk
            if len(body) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES} bytes")
    return bytes(body)
