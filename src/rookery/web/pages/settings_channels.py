"""Settings, channels: by what people are told that somebody asks or has something to say."""

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from rookery.core.errors import RookeryError
from rookery.domains.owner.channel_reading import show_channels
from rookery.domains.owner.channels import KINDS, kind_of
from rookery.web.refused_form import RefusedForm, refused_form
from rookery.web.routing import action, page
from rookery.web.settings_view import SECRET_KEYS, channel_config, channel_fields
from rookery.web.visit import Visit

HERE = "/settings/channels"
CHANGES = {"enable": "on", "disable": "off", "remove": "removed"}


@page(HERE)
async def channels(visit: Visit) -> Response:
    """All channels, and the form of the one that is set up."""
    return await _shown(visit, visit.query.get("kind", ""))


@action(HERE + "/set")
async def set_channel(visit: Visit) -> Response:
    """Set a channel of people up, or anew."""
    kind = visit.word("kind")
    kind_of(kind)
    given: dict[str, Any] = {"action": "set", "channel_type": kind, "config": channel_config(kind, visit)}
    try:
        done = await visit.call("configure_notifications", {**given, "enabled": "on" in visit.words("enabled")})
    except RookeryError as error:
        return await _shown(visit, kind, refused_form(visit, "set", error, without=SECRET_KEYS))
    warning = done.get("warning", "")
    words = f"The channel {kind} is set up.{f' But {warning}.' if warning else ''}"
    return await visit.done(words, to=visit.url(HERE))


@action(HERE + "/change")
async def change_channel(visit: Visit) -> Response:
    """Switch a channel on or off, or remove it."""
    change, channel = visit.word("change"), visit.word("channel")
    await visit.call("configure_notifications", {"action": change, "channel_type": channel})
    return await visit.done(f"The channel {channel} is {CHANGES.get(change, change)}.", to=visit.url(HERE))


@action(HERE + "/test")
async def test_channels(visit: Visit) -> Response:
    """Send a message by every channel of people that is on, and say by which it went."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    message = f"This is a test from the console of Rookery, sent at {at}."
    told = await visit.call("notify_owner", {"title": "A test", "message": message, "level": "info"})
    parts = [(told[each], words) for each, words in (("sent", "has it"), ("pending", "is tried"), ("failed", "failed"))]
    said = "; ".join(f"{', '.join(names)} {words}" for names, words in parts if names)
    return await visit.done(f"Test: {said or 'no channel is on'}.", to=visit.url(HERE))


async def _shown(visit: Visit, kind: str, refused: RefusedForm | None = None) -> Response:
    refused = refused or RefusedForm()
    found = (await visit.call(show_channels))["channels"]
    shared = {each["channel_type"]: each for each in found if each.get("shared")}
    values: dict[str, Any] = {
        "tab": "channels",
        "channels": found,
        "kinds": sorted(KINDS),
        "kind": kind if kind in KINDS else "",
        "fields": channel_fields(kind) if kind in KINDS else [],
        "known": shared.get(kind),
        "any_on": any(each["enabled"] for each in shared.values()),
        # Channels of all agents are set up by an owner and by nobody else, as its tool says.
        "may": (await visit.actor()).role == "owner",
        "refused": refused,
    }
    return await visit.render("settings_channels.html", status=refused.status, **values)
