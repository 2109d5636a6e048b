"""find_references: definitions and references told apart, what each reference is in, and who may ask."""

import pytest

from rookery.core.errors import InvalidParams, NotFound, ValidationFailed
from tests.domains.code.codebase import Codebase

BANK = {
    "bank/account.py": (
        "class Account:\n"
        "    def pay(self, amount):\n"
        "        if amount:\n"
        "            self.pay(amount - 1)\n"
        "        return 'pay pay'  # pay\n"
    ),
    "bank/use.py": (
        "from bank.account import Account\n\nmine = Account()\n\n\ndef spend():\n    mine.pay(1)\n    return mine.pay\n"
    ),
    "web/use.ts": "export class Wallet {\n  pay(): void { log(this.pay); }\n}\n",
}


async def test_a_project_of_others_is_not_there(codebase: Codebase) -> None:
    await codebase.open(BANK)
    with pytest.raises(NotFound):
        await codebase.references(codebase.stranger, "pay", project_id="code")


async def test_definitions_and_references_are_told_apart(codebase: Codebase) -> None:
    agent = await codebase.open(BANK)
    found = await codebase.fleet.call(agent, "find_references", symbol="pay")
    assert [(each["path"], each["start_line"], each["end_line"], each["in"]) for each in found.definitions] == [
        ("bank/account.py", 2, 5, "Account"),
        ("web/use.ts", 2, 2, "Wallet"),
    ]
    assert found.definitions_total == 2
    assert await codebase.references(agent, "pay") == [
        "bank/account.py:4 in pay",
        "bank/use.py:7 in spend",
        "bank/use.py:8 in spend",
        "web/use.ts:2 in pay",
    ]
    assert found.total == 4
    assert found.references[1]["in"] == {"name": "spend", "kind": "function", "start_line": 6, "end_line": 8}


async def test_what_is_in_no_symbol_is_found_as_well(codebase: Codebase) -> None:
    agent = await codebase.open(BANK)
    assert await codebase.references(agent, "Account") == ["bank/use.py:1", "bank/use.py:3"]
    assert await codebase.references(agent, "mine") == ["bank/use.py:7 in spend", "bank/use.py:8 in spend"]


async def test_a_path_limits_both(codebase: Codebase) -> None:
    agent = await codebase.open(BANK)
    found = await codebase.fleet.call(agent, "find_references", symbol="pay", path="web")
    assert (found.definitions_total, found.total) == (1, 1)
    with pytest.raises(NotFound):
        await codebase.references(agent, "pay", path="nowhere")


async def test_the_other_spelling_is_taken(codebase: Codebase) -> None:
    agent = await codebase.open(BANK)
    found = await codebase.fleet.call(
        agent, "corvid_find_references", symbol_name="Account", project_dir=str(codebase.root)
    )
    assert (found.symbol, found.total) == ("Account", 2)


@pytest.mark.parametrize(
    "symbol", ["nobody", "--include=*", "-e", ".*", "pay|spend", "[", "a b", "'; id", "pa", "PAY", "😀"]
)
async def test_a_name_is_a_name_and_nothing_else(codebase: Codebase, symbol: str) -> None:
    agent = await codebase.open(BANK)
    found = await codebase.fleet.call(agent, "find_references", symbol=symbol)
    assert (found.definitions, found.references, found.total) == ([], [], 0)
    assert found.note == f"no definition of {symbol}; no reference to {symbol}"


@pytest.mark.parametrize("asked", [{}, {"symbol": " "}, {"symbol": "x" * 1001}, {"symbol": "a", "cursor": "?"}])
async def test_what_means_nothing_is_refused(codebase: Codebase, asked: dict[str, str]) -> None:
    agent = await codebase.open(BANK)
    with pytest.raises((InvalidParams, ValidationFailed)):
        await codebase.fleet.call(agent, "find_references", **asked)


async def test_references_come_in_pages(codebase: Codebase) -> None:
    uses = "\n".join(["import thing"] + ["thing()"] * 9) + "\n"
    agent = await codebase.open({f"m{n}.py": uses for n in range(5)})
    whole = await codebase.references(agent, "thing", limit=200)
    assert len(whole) == 50
    seen: list[str] = []
    how: dict[str, object] = {"limit": 7}
    while True:
        page = await codebase.fleet.call(agent, "find_references", symbol="thing", **how)
        seen += [f"{each['path']}:{each['line']}" for each in page.references]
        assert hasattr(page, "definitions") == ("cursor" not in how)
        if getattr(page, "next_cursor", None) is None:
            break
        how["cursor"] = page.next_cursor
    assert seen == whole


async def test_a_changed_file_is_not_counted_twice(codebase: Codebase) -> None:
    agent = await codebase.open(BANK)
    for number in range(4):
        codebase.write("bank/use.py", f"from bank import Account\nx = {number}\nAccount.pay({number})\n")
        assert await codebase.references(agent, "Account") == ["bank/use.py:1", "bank/use.py:3"]
    # What the file was in before is gone, except for where others still are.
    assert codebase.count("segments") <= 4
    for path in BANK:
        (codebase.root / path).unlink()
    assert await codebase.references(agent, "pay") == []
    assert (codebase.kept, codebase.count("segments"), codebase.count("words")) == ({}, 0, 0)
