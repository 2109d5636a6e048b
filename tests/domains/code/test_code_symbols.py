"""code_symbols: who may look where, what is found, and that the answer is never older than the question."""

import os
from pathlib import Path

import pytest

from rookery.core.errors import ConfigurationError, InvalidParams, NotFound, RookeryError, ValidationFailed
from tests.domains.code.codebase import Codebase

SHOP = {
    "shop/cart.py": (
        "TAX = 2\n\n\nclass Cart:\n    size: int = 0\n\n    def add_item(self, item):\n        return item\n"
    ),
    "shop/web.py": "from shop.cart import Cart\n\n\ndef add_to_cart(request):\n    return Cart().add_item(request)\n",
    "static/shop.js": "export function addItem(item) {\n  return item;\n}\n",
}


async def test_a_project_that_is_closed_or_of_others_is_not_there(codebase: Codebase) -> None:
    await codebase.open(SHOP)
    owner = codebase.fleet.owner
    await codebase.fleet.call(owner, "create_agent", name="eve")
    await codebase.fleet.call(owner, "set_project_members", project="code", agents=[])
    eve = codebase.fleet.actor(agent="eve")
    for actor in (eve, codebase.stranger):
        for where in ({"project_id": "code"}, {"project_dir": str(codebase.root)}):
            with pytest.raises(NotFound):
                await codebase.symbols(actor, "Cart", **where)
    assert codebase.kept == {}


@pytest.mark.parametrize("path", ["../secret.py", "/etc", "~/x", "a\\b", "shop/../../x", ".git/config", "x\0y"])
async def test_no_path_leads_out_of_the_project(codebase: Codebase, path: str) -> None:
    agent = await codebase.open(SHOP)
    with pytest.raises((ValidationFailed, InvalidParams)):
        await codebase.symbols(agent, path=path)


async def test_a_link_out_of_the_project_is_not_followed(codebase: Codebase, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.py").write_text("def secret(): pass\n")
    agent = await codebase.open(SHOP)
    (codebase.root / "folder").symlink_to(tmp_path / "outside")
    (codebase.root / "file.py").symlink_to(tmp_path / "outside" / "secret.py")
    (codebase.root / "pipe.py").unlink(missing_ok=True)
    os.mkfifo(codebase.root / "pipe.py")
    assert await codebase.symbols(agent, "secret") == []
    assert set(codebase.kept) == set(SHOP)
    for path in ("folder", "file.py", "pipe.py"):
        with pytest.raises(NotFound):
            await codebase.symbols(agent, path=path)


async def test_a_project_without_a_folder_says_so(codebase: Codebase) -> None:
    owner = codebase.fleet.owner
    await codebase.fleet.call(owner, "create_project", slug="empty")
    with pytest.raises(ConfigurationError, match="no folder"):
        await codebase.symbols(codebase.fleet.actor(project="empty"), "x")
    await codebase.fleet.call(owner, "create_project", slug="gone", path=str(codebase.folder / "gone"))
    with pytest.raises(ConfigurationError, match="not there"):
        await codebase.symbols(codebase.fleet.actor(project="gone"), "x")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("=cart", ["Cart"]),
        ("=add_item", ["add_item"]),
        ("=add", []),
        ("add*", ["addItem", "add_item", "add_to_cart"]),
        ("item", ["addItem", "add_item"]),
        ("CART", ["Cart", "add_to_cart"]),
        ("adtcrt", ["add_to_cart"]),
        ("add_itme", ["add_item", "addItem"]),
        ("zzz", []),
        (".*", []),
        ("[", []),
        ("-rf", []),
        ("--help", []),
        ("$(id)", []),
        ("%", []),
        ("a\tb", []),
    ],
)
async def test_names_match_exactly_by_their_begin_or_nearly(codebase: Codebase, query: str, found: list[str]) -> None:
    agent = await codebase.open(SHOP)
    names = [each.rpartition(" ")[2] for each in await codebase.symbols(agent, query)]
    assert names == found
    how = {"=": ("exact", query[1:]), "*": ("prefix", query[:-1])}
    match, plain = how.get(query[0], how.get(query[-1], ("fuzzy", query)))
    if plain != ".":
        said = [each.rpartition(" ")[2] for each in await codebase.symbols(agent, plain, match=match)]
        assert said == found


async def test_a_symbol_comes_with_its_file_lines_and_surroundings(codebase: Codebase) -> None:
    agent = await codebase.open(SHOP)
    found = await codebase.fleet.call(agent, "code_symbols", query="=Cart")
    assert found.symbols == [
        {"name": "Cart", "kind": "class", "path": "shop/cart.py", "start_line": 4, "end_line": 8, "members": 2}
    ]
    (method,) = (await codebase.fleet.call(agent, "code_symbols", query="=add_item")).symbols
    assert (method["kind"], method["in"], method["start_line"], method["end_line"]) == ("method", "Cart", 7, 8)
    (exported,) = (await codebase.fleet.call(agent, "code_symbols", query="=addItem")).symbols
    assert exported["exported"] is True


async def test_without_a_query_the_symbols_of_a_path_are_listed(codebase: Codebase) -> None:
    agent = await codebase.open(SHOP)
    cart = [
        "shop/cart.py:1-1 variable TAX",
        "shop/cart.py:4-8 class Cart",
        "shop/cart.py:5-5 variable size",
        "shop/cart.py:7-8 method add_item",
    ]
    assert await codebase.symbols(agent, path="shop/cart.py") == cart
    assert await codebase.symbols(agent, path="./shop/") == [*cart, "shop/web.py:4-5 function add_to_cart"]
    assert len(await codebase.symbols(agent)) == 6
    assert await codebase.symbols(agent, path="shop", kinds=["class", "function"]) == [
        cart[1],
        "shop/web.py:4-5 function add_to_cart",
    ]
    assert await codebase.symbols(agent, "item", path="static") == ["static/shop.js:1-3 function addItem"]
    with pytest.raises(NotFound):
        await codebase.symbols(agent, path="sho")


async def test_a_folder_of_the_project_can_be_named_instead_of_it(codebase: Codebase) -> None:
    await codebase.open(SHOP)
    elsewhere = codebase.fleet.actor()
    everything = await codebase.symbols(elsewhere, project_id="code")
    assert await codebase.symbols(elsewhere, project_dir=str(codebase.root)) == everything
    inside = await codebase.symbols(elsewhere, project_dir=str(codebase.root / "shop"))
    assert inside == [each for each in everything if each.startswith("shop/")]
    assert await codebase.symbols(elsewhere, project_dir=str(codebase.root / "shop"), path="web.py") == inside[-1:]
    for outside in (str(codebase.folder), str(codebase.root / ".." / "x"), "shop"):
        with pytest.raises(NotFound):
            await codebase.symbols(elsewhere, project_dir=outside)


async def test_results_come_in_pages_that_have_everything_once(codebase: Codebase) -> None:
    agent = await codebase.open({f"m{n}.py": f"def step_{n}(): pass\ndef walk(): pass\n" for n in range(7)})
    for asked in ({}, {"query": "step"}, {"query": "=walk"}, {"query": "w", "kinds": ["function"]}):
        whole = await codebase.fleet.call(agent, "code_symbols", **asked)
        seen: list[object] = []
        cursor = None
        while True:
            page = await codebase.fleet.call(
                agent, "code_symbols", **asked, limit=3, **({"cursor": cursor} if cursor else {})
            )
            assert page.total == whole.total == len(whole.symbols)
            seen += page.symbols
            cursor = getattr(page, "next_cursor", None)
            if cursor is None:
                break
        assert seen == whole.symbols
    with pytest.raises(InvalidParams):
        await codebase.symbols(agent, "step", cursor="rubbish")


@pytest.mark.parametrize(
    "asked",
    [
        {"query": ""},
        {"query": "x" * 1001},
        {"limit": 0},
        {"limit": 201},
        {"kinds": ["rhyme"]},
        {"match": "regex"},
        {"x": 1},
    ],
)
async def test_what_means_nothing_is_refused(codebase: Codebase, asked: dict[str, object]) -> None:
    agent = await codebase.open(SHOP)
    with pytest.raises(RookeryError) as caught:
        await codebase.fleet.call(agent, "code_symbols", **asked)
    assert isinstance(caught.value, InvalidParams | ValidationFailed)


async def test_every_change_of_a_file_is_in_the_next_answer(codebase: Codebase) -> None:
    agent = await codebase.open(SHOP)
    assert await codebase.symbols(agent, "=Cart") == ["shop/cart.py:4-8 class Cart"]
    same_size = SHOP["shop/cart.py"].replace("Cart", "Card")
    file = codebase.root / "shop/cart.py"
    seen = file.stat()
    file.write_text(same_size)
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert await codebase.symbols(agent, "=Cart") == []
    assert await codebase.symbols(agent, "=Card") == ["shop/cart.py:4-8 class Card"]
    codebase.write("new/deep/er.py", "class Fresh: pass\n")
    assert await codebase.symbols(agent, "=Fresh") == ["new/deep/er.py:1-1 class Fresh"]
    codebase.write("new/deep/er.py", "class Fresher: pass\n")
    assert await codebase.symbols(agent, "Fresh") == ["new/deep/er.py:1-1 class Fresher"]
    (codebase.root / "new").rename(codebase.root / "old")
    assert await codebase.symbols(agent, "Fresh") == ["old/deep/er.py:1-1 class Fresher"]
    file.unlink()
    assert await codebase.symbols(agent, "Card") == []
    assert set(codebase.kept) == {"shop/web.py", "static/shop.js", "old/deep/er.py"}


async def test_what_is_ignored_hidden_or_installed_is_left_out(codebase: Codebase) -> None:
    agent = await codebase.open(
        {
            ".gitignore": "*.gen.py\n/out/\n!keep.gen.py\n",
            "sub/.gitignore": "local.py\n",
            "a.py": "def here(): pass\n",
            "a.gen.py": "def made(): pass\n",
            "keep.gen.py": "def kept(): pass\n",
            "out/x.py": "def out(): pass\n",
            "sub/local.py": "def local(): pass\n",
            "sub/other.py": "def other(): pass\n",
            ".hidden/x.py": "def hidden(): pass\n",
            "node_modules/x.js": "function installed() {}\n",
            "dist/x.js": "function built() {}\n",
            "src/dist/x.js": "function sources() {}\n",
            "env/pyvenv.cfg": "",
            "env/lib/x.py": "def environment(): pass\n",
            "large.py": "x = 1\n" * 100_000,
        }
    )
    names = [each.rpartition(" ")[2] for each in await codebase.symbols(agent)]
    assert names == ["here", "kept", "sources", "other"]
    codebase.write("b.gen.py", "def made_later(): pass\n")
    codebase.write(".gitignore", "*.gen.py\n")
    names = [each.rpartition(" ")[2] for each in await codebase.symbols(agent)]
    assert names == ["here", "out", "sources", "other"]


async def test_files_of_any_bytes_are_read_as_far_as_they_can_be(codebase: Codebase) -> None:
    agent = await codebase.open(
        {
            "mixed.py": "def café(): pass\n".encode() + b"# \xe9\xff latin\nname = '\xe4'\ndef after(): pass\n",
            "wide.py": "def wide(): pass\n".encode("utf-16"),
            "marked.py": b"\xef\xbb\xbfdef marked(): pass\n",
            "binary.py": b"def binary(): pass\n\0\0\0",
            "broken.py": "class Broken(:\n  def ok(self): pass\n",
            "latin.py": b"def caf\xe9(): pass\n",
            "empty.py": "",
            "crlf.py": "def one(): pass\r\ndef two(): pass\r\n",
        }
    )
    names = [each.rpartition(" ")[2] for each in await codebase.symbols(agent)]
    assert {"café", "after", "wide", "marked", "ok", "one", "two"} <= set(names)
    assert "binary" not in names
    assert codebase.kept["binary.py"] == "unread"


async def test_the_caller_is_told_how_far_the_first_indexing_is(codebase: Codebase) -> None:
    agent = await codebase.open({f"m{n}.py": f"def f{n}(): pass\n" for n in range(60)})
    found = await codebase.fleet.call(agent, "code_symbols", query="=f7")
    assert found.total == 1
    assert codebase.count("segments") >= 1
    nothing = await codebase.fleet.call(agent, "code_symbols", query="nobody")
    assert (nothing.symbols, nothing.total, nothing.note) == ([], 0, "no symbol matches nobody")
