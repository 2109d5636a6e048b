"""The plugin as a whole: is it declared well, and who gets what of it?"""

from rookery.testing import Bench, Era

EVERYONE = {"echo_message", "image_test", "data_explorer"}
GRANTED = {"cat_fact", "code_review_sampling", "madlibs_elicitation"}


async def test_nothing_is_declared_badly(bench: Bench) -> None:
    assert bench.lint() == []


async def test_an_agent_gets_what_is_harmless_and_the_owner_everything(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    owner = await bench.client(as_owner=True, era=era)
    assert (EVERYONE | GRANTED) & set(await ada.tools()) == EVERYONE
    assert set(await owner.tools()) >= EVERYONE | GRANTED
    await bench.grant("ada", "cat_fact")
    assert "cat_fact" in await ada.tools()


async def test_an_agent_with_a_list_of_its_own_gets_nothing_else(bench: Bench, era: Era) -> None:
    bob = await bench.client("bob", permissions=["ping"], era=era)
    assert set(await bob.tools()) == {"ping"}
    assert "echo://{message}" not in await bob.templates()
    assert "code_review" not in await bob.prompts()


async def test_what_only_reads_says_so(bench: Bench) -> None:
    tools = await (await bench.client(as_owner=True)).tools()
    only_read = {name for name in EVERYONE | GRANTED if (hints := tools[name].annotations) and hints.read_only_hint}
    assert only_read == EVERYONE
