"""A process that logs to standard error while it makes calls: `python -m tests.around.talker URL HOME MARKER`."""

import asyncio
import contextlib
import logging
import sys
import threading
import warnings

from rookery.app import make_platform
from rookery.around.logs import bind_ids, configure_logs
from rookery.core.errors import RookeryError
from rookery.identity.resolve import Binding
from rookery.settings import Settings
from tests.around import workload

log = logging.getLogger("rookery.talker")


class Careless:
    def __del__(self) -> None:
        raise ValueError(sys.argv[3])


def fail() -> None:
    raise ValueError(sys.argv[3])


async def main(url: str, home: str, marker: str) -> None:
    platform = make_platform(Settings(home=home, database=url, plugins=False), extra={"workload": workload})
    made = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(session="session-1")))
    for tool in workload.TOOLS:
        bind_ids(made.actor, f"req-{tool.name}", "trace-1")
        arguments = {"key": f"{marker}-{tool.name}"} if "key" in tool.input.model_fields else {}
        with contextlib.suppress(RookeryError):
            await platform.calls.call(made.actor, tool.name, arguments, request_id=f"req-{tool.name}", trace="trace-1")
    log.warning("two\nlines and \u2028 an umlaut: ü")
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Careless()
    warnings.warn("take care", stacklevel=1)
    platform.close()


if __name__ == "__main__":
    configure_logs("debug")
    asyncio.run(main(*sys.argv[1:]))
    fail()
