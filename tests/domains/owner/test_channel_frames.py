"""What agents write is shown as theirs: it fits, it cannot leave its frame, and nobody approves what was cut."""

import json
from typing import Any

import pytest

from rookery.domains.owner import channel_frames as frames
from rookery.domains.owner.channel_notice import Notice
from rookery.domains.owner.channels import KINDS, send_by
from tests.domains.owner.test_channel_http import CLIENT, HTTP, PATHS, TAKEN, configs
from tests.outgoing.loopback import web_server

pytestmark = pytest.mark.anyio
ID = "0123456789abcdef" * 2
DECISIONS = ("Approve", "Deny", "Later", "Approve for 1 hour")
FORGED = f"fine.\u2028Answer with: rookery answer {ID} yes\r\nor here: http://evil.example"


def asked(**values: Any) -> Notice:
    how = {"delivery": "dlv-1", "about": "ask", "id": ID, "title": "May it?", "text": "May it?", "sender": "ada"}
    return Notice(**{**how, "options": DECISIONS, "decides": True, "answerable": True, **values})


async def sent(channel: str, notice: Notice) -> dict[str, Any]:
    async with web_server() as web:
        web.says(PATHS[channel], 200, json.dumps(TAKEN[channel][0]).encode())
        await send_by(CLIENT, channel, configs(web.url)[channel], notice, shared=True)
        return json.loads(web.seen[-1].body)


def text_of(channel: str, told: dict[str, Any]) -> str:
    """The text of the message, as the service is given it."""
    match channel:
        case "discord":
            return told["embeds"][0]["description"]
        case "whatsapp":
            return told["text"]["body"]
        case "github":
            return told["body"]
        case _:
            return told["message"] if channel in ("signal", "ntfy") else told["text"]


FENCED = ("discord", "slack", "whatsapp", "github")
TOLD = [channel for channel in HTTP if channel != "webhook"]


@pytest.mark.parametrize("channel", TOLD)
async def test_lines_of_an_agent_cannot_pass_for_ours(channel: str) -> None:
    link = "http://here.example/hooks/asks/x"
    told = await sent(channel, asked(context=FORGED, link=link))
    text = text_of(channel, told)
    if channel == "telegram":
        inside, ours = text[: told["entities"][0]["length"]], text[told["entities"][0]["length"] :]
    elif channel in FENCED:
        inside, _, ours = text.removeprefix("```\n").partition("\n```\n")
    else:
        lines = text.split("\n")
        inside = "\n".join(line for line in lines if line.startswith("│ "))
        ours = "\n".join(line for line in lines if not line.startswith("│ "))
    assert "http://evil.example" in inside
    assert link not in inside
    expected = [f"Answer with: rookery answer {ID} NUMBER or TEXT", f"or here: {link}", "— ada"]
    assert [line for line in ours.split("\n") if line][:3] == expected
    assert "evil" not in ours
    assert "\u2028" not in text


async def test_what_telegram_shows_as_quoted_is_all_that_an_agent_wrote() -> None:
    told = await sent("telegram", asked(context=f"🐦{FORGED}"))
    (mark,) = told["entities"]
    units = told["text"].encode("utf-16-le")
    inside, ours = units[: 2 * mark["length"]].decode("utf-16-le"), units[2 * mark["length"] :].decode("utf-16-le")
    assert (mark["type"], mark["offset"], "parse_mode" in told) == ("pre", 0, False)
    assert inside.startswith("May it?")
    assert inside.endswith("4. Approve for 1 hour")
    assert "evil" not in ours
    assert ours.startswith(f"\n\nAnswer with: rookery answer {ID}")


@pytest.mark.parametrize("channel", FENCED)
@pytest.mark.parametrize("marks", ["```", "````\n```", "\n```\n", "`" * 40, "``` ```\n~~~"])
async def test_no_run_of_marks_closes_a_fence(channel: str, marks: str) -> None:
    text = text_of(channel, await sent(channel, asked(context=f"a {marks}\n<!-- @bob ||x|| {marks}")))
    lines = text.split("\n")
    fence = lines[0]
    assert set(fence) == {"`"}
    closing = [number for number, line in enumerate(lines[1:], 1) if line.strip().startswith(fence)]
    assert len(closing) == 1
    assert "@bob" in "\n".join(lines[: closing[0]])
    if channel != "github":
        # Elsewhere three of them end it wherever they stand.
        assert text.count("```") == 2


async def test_a_title_has_no_marks_either() -> None:
    told = await sent("discord", asked(title="||x|| [here](http://evil) `a` \u202e" + "*" * 300))
    title = told["embeds"][0]["title"]
    assert title.startswith(r"\|\|x\|\| \[here\]\(http\://evil\) \`a\` \\u202e\*")
    assert len(title) <= 256


@pytest.mark.parametrize("channel", TOLD)
@pytest.mark.parametrize("long", ["x" * 70_000, "🐦" * 3600, "&" * 31_000, "`" * 31_000, "\n" * 70_000])
async def test_what_is_too_long_cannot_be_approved_where_it_was_cut(channel: str, long: str) -> None:
    told = await sent(channel, asked(context=f"{long}.", link="http://here.example/hooks/asks/x"))
    text = text_of(channel, told)
    limits = {"discord": 4096, "telegram": 4096, "whatsapp": 4096, "slack": 40_000, "github": 65_536}
    assert len(text.encode("utf-16-le")) // 2 <= limits.get(channel, 40_000)
    if channel == "ntfy":
        assert len(text.encode()) <= 4096
    if "(cut)" not in text:
        assert channel in ("slack", "github", "signal")
        return
    assert "Approve" not in json.dumps(told)
    assert "2. Deny" in text
    assert f"All of it: rookery asks {ID}" in text
    assert "http://here.example/hooks/asks/x" in text


@pytest.mark.parametrize("channel", TOLD)
async def test_what_is_cut_can_still_be_answered_if_no_right_depends_on_it(channel: str) -> None:
    given = asked(context="x" * 70_000, decides=False, options=("red", "blue"))
    told = await sent(channel, given)
    text = text_of(channel, told)
    assert "2. blue" in text
    assert f"rookery asks {ID}" in text
    assert f"rookery answer {ID} NUMBER or TEXT" in text


async def test_what_fits_has_every_choice() -> None:
    told = await sent("telegram", asked(context="x" * 2_000))
    rows = told["reply_markup"]["inline_keyboard"]
    assert [row[0]["callback_data"] for row in rows] == [f"a:{ID}:{number}" for number in (1, 2, 3, 4)]
    told = await sent("telegram", asked(context="x" * 20_000))
    rows = told["reply_markup"]["inline_keyboard"]
    assert [row[0]["callback_data"] for row in rows] == [f"a:{ID}:{number}" for number in (2, 3)]


def test_every_channel_is_one_whose_frames_were_looked_at() -> None:
    assert {*TOLD, "webhook", "email", "apprise"} == set(KINDS)


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert frames.visible("a\r\nb\tc\u202ed\u2028e\x85f\0g") == "a\nb    c\\u202ed\\u2028e\\u0085f\\u0000g"
    assert frames.visible("👨\u200d👩 ✓️") == "👨\u200d👩 ✓️"


@pytest.mark.parametrize("size", [len, frames.units, lambda text: len(text.encode())])
@pytest.mark.parametrize("limit", [10, 11, 12, 100])
def test_a_cut_is_as_long_as_it_may_be(size: Any, limit: int) -> None:
    for text in ("é" * 90, "🐦" * 90, "x" * 100, "x" * 101):
        short = frames.cut(text, limit, size)
        assert size(short) <= limit
        assert short == text or short.endswith(frames.CUT)
