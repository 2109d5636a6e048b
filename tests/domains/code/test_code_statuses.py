from tests.domains.code.codebase import Codebase
from tests.statuses import statuses_of


async def test_symbols_are_looked_for_with_one_status_and_references_with_two(codebase: Codebase) -> None:
    actor = await codebase.open({"a.py": "def mend():\n    pass\n\n\nmend()\n"})
    heard = statuses_of(codebase.fleet)
    await codebase.symbols(actor, "mend")
    await codebase.references(actor, "mend")
    assert heard["code_symbols"] == ["reading the code of code"]
    assert heard["find_references"] == ["reading the code of code", "references found: 1"]
