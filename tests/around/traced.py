"""A process that calls a tool below the caller's own span: `python -m tests.around.traced HOME TRACEPARENT MARKER`."""

import asyncio
import sys

from rookery.app import make_platform
from rookery.around.timing import configure_tracing, tracing
from rookery.identity.resolve import Binding
from rookery.settings import Settings
from tests.around import workload


async def main(home: str, trace: str, marker: str) -> None:
    platform = make_platform(Settings(home=home, plugins=False), extra={"workload": workload})
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding())).actor
    await platform.calls.call(actor, "add_pair", {"key": marker}, request_id="req-1", trace=trace)
    platform.close()


if __name__ == "__main__":
    print(configure_tracing("rookery-test"), tracing())
    asyncio.run(main(*sys.argv[1:]))
    print("opentelemetry.sdk" in sys.modules)
