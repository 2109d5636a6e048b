"""Services that Apprise knows and we do not. It makes its own requests, so it runs where those can be guarded."""

import asyncio
import contextlib
import importlib.util
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from rookery.core.errors import ServiceUnavailable, TimedOut, ValidationFailed
from rookery.outgoing.client import ALLOW_HINT

TIMEOUT_S = 30.0
MAX_ANSWER = 100
_PROGRAM = "rookery.outgoing.service_process"
# Nothing else: a service that runs amiss should not find the server's secrets, and no proxy stands in between.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")


def is_installed() -> bool:
    """Whether the extra `notify` is there."""
    return importlib.util.find_spec("apprise") is not None


async def check_service(allow: Sequence[str], url: str) -> None:
    """ValidationFailed unless the address is one of a service that Apprise knows."""
    await _run(allow, url, check=True)


async def tell_service(allow: Sequence[str], url: str, *, title: str, body: str, level: str) -> None:
    """Tell something; when this returns, the service has taken it. `allow` is the setting `outgoing_allow`."""
    await _run(allow, url, title=title, body=body, level="failure" if level == "error" else level)


async def _run(allow: Sequence[str], url: str, *, check: bool = False, **told: str) -> None:
    order = {"allow": list(allow), "url": url, "check": check, "within_s": math.ceil(TIMEOUT_S) + 1, **told}
    word = await _word(order)
    if word in ("sent", "fine"):
        return
    if word == "missing":
        raise ValidationFailed("apprise is not installed", hint="pip install 'rookery[notify]'")
    if word == "wrong":
        raise ValidationFailed("apprise knows no service of this address", hint="see its list of services")
    if word == "blocked":
        raise ValidationFailed("apprise wanted to reach this machine's own or a private network", hint=ALLOW_HINT)
    raise ServiceUnavailable("apprise could not deliver it")


async def _word(order: dict[str, Any]) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        _PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
        cwd="/",
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            said = await _talk(process, json.dumps(order).encode())
    except TimeoutError:
        raise TimedOut(f"apprise did not finish within {TIMEOUT_S:g} s", hint="try again later") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return said.decode("ascii", "replace").strip()


async def _talk(process: asyncio.subprocess.Process, order: bytes) -> bytes:
    """What the process says first, and no more of it than a word."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(order)
        await process.stdin.drain()
    process.stdin.close()
    said = await process.stdout.read(MAX_ANSWER)
    await process.wait()
    return said


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # No home, so that no library finds logins in a .netrc there and sends them along.
    kept |= {"HOME": "/nonexistent", "NETRC": os.devnull}
    # What this process can import, wherever it was started.
    return {**kept, "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)}
