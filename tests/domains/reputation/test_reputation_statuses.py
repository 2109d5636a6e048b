from typing import Any

from tests.domains.reputation.bench import Bench
from tests.statuses import statuses_of


class Ledger:
    """Takes every note."""

    async def put(self, note: Any) -> str:
        return "tx-1"


async def test_an_attestation_is_published_with_two_statuses_whether_there_is_a_ledger_or_not(bench: Bench) -> None:
    ada = await bench.agent("ada")
    facts: Any = bench.fleet.platform.calls.facts
    signing = "Computing and signing the reputation"
    for ledger, then in ((None, "The attestation is in the log"), (Ledger(), "Writing a note to the ledger")):
        facts["ledger"] = ledger
        heard = statuses_of(bench.fleet)
        await bench.fleet.call(ada, "publish_attestation")
        assert heard["publish_attestation"] == [signing, then]
