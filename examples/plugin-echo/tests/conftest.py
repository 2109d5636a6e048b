"""A platform with the plugin in it, for every test anew."""

from collections.abc import AsyncIterator

import pytest
import rookery_echo

from rookery.testing import ERAS, Bench, Era, open_bench


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench({"echo": rookery_echo}) as bench:
        yield bench


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    """The test runs once in each era of the protocol."""
    return request.param
