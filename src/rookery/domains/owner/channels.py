"""The kinds of channels: what each needs to know, and how it tells something."""

import contextlib
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rookery.core.errors import RookeryError, ServiceUnavailable, TimedOut, ValidationFailed
from rookery.domains.owner import channel_apprise, channel_http, channel_mail
from rookery.domains.owner.channel_notice import Notice
from rookery.outgoing.client import GuardedClient

MAX_KEYS = 12
MAX_VALUE = 4000
SWITCHES = frozenset({"links", "answers"})
OF_PEOPLE = frozenset({"links", "answers", "login", "user_id"})
"""Keys that mean something only in channels of people, since nobody is answered by another."""
Send = Callable[[GuardedClient, Mapping[str, str], Notice], Awaitable[str | None]]
Check = Callable[[GuardedClient, Mapping[str, str]], Awaitable[None]]
Warn = Callable[[GuardedClient, Mapping[str, str]], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKind:
    """`needs` are sets of keys, one of which has to be there in full; `environment` has variables that may stand in."""

    send: Send
    needs: tuple[frozenset[str], ...]
    may: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    plain: bool = False
    """Whether http over the internet is good enough, since no secret is sent."""
    people: bool = False
    """Whether only people may set it up."""
    links: bool = True
    """Whether asks carry a link that answers them: not where everybody can read along."""
    answers: frozenset[str] = frozenset()
    """The keys that have to be there for answers to be listened for; none: nobody can answer by it."""
    check: Check | None = None
    """What else is looked at before a config is kept; None: whether its addresses may be reached, and no more."""
    warn: Warn | None = None
    """What the owner is told who sets up a config that will do, and is unsafe."""

    @property
    def keys(self) -> frozenset[str]:
        return self.may.union(*self.needs)


KINDS: dict[str, ChannelKind] = {
    "discord": ChannelKind(
        send=channel_http.discord,
        needs=(frozenset({"webhook_url"}),),
        environment={"webhook_url": "DISCORD_WEBHOOK_URL"},
        check=channel_http.check_discord,
    ),
    "slack": ChannelKind(
        send=channel_http.slack,
        needs=(frozenset({"bot_token", "channel"}), frozenset({"webhook_url"})),
        may=frozenset({"api_url"}),
        environment={"bot_token": "SLACK_BOT_TOKEN"},
    ),
    "telegram": ChannelKind(
        send=channel_http.telegram,
        needs=(frozenset({"bot_token", "chat_id"}),),
        may=frozenset({"api_url", "user_id", "answers"}),
        answers=frozenset({"chat_id"}),
        environment={"bot_token": "TELEGRAM_BOT_TOKEN", "chat_id": "TELEGRAM_CHAT_ID"},
    ),
    "whatsapp": ChannelKind(
        send=channel_http.whatsapp,
        needs=(frozenset({"phone_number_id", "access_token", "recipient_phone"}),),
        may=frozenset({"api_url"}),
        environment={"access_token": "WHATSAPP_ACCESS_TOKEN"},
    ),
    "signal": ChannelKind(
        send=channel_http.signal,
        needs=(frozenset({"sender_number", "recipient_number"}),),
        may=frozenset({"api_url"}),
        environment={"sender_number": "SIGNAL_SENDER_NUMBER", "api_url": "SIGNAL_API_URL"},
    ),
    "email": ChannelKind(
        send=channel_mail.email,
        needs=(frozenset({"smtp_host", "from_address", "to_address"}),),
        may=frozenset({"smtp_port", "security", "username", "password"}),
        check=channel_mail.check_email,
    ),
    "ntfy": ChannelKind(
        send=channel_http.ntfy, needs=(frozenset({"topic"}),), may=frozenset({"server_url", "token"})
    ),
    "webhook": ChannelKind(
        send=channel_http.webhook, needs=(frozenset({"url"}),), may=frozenset({"secret"}), plain=True
    ),
    "github": ChannelKind(
        send=channel_http.github,
        needs=(frozenset({"repo", "token"}),),
        may=frozenset({"labels", "api_url", "login", "answers"}),
        links=False,
        answers=frozenset({"login"}),
        warn=channel_http.warn_github,
        environment={"repo": "NOTIFICATION_GITHUB_REPO", "token": "GH_TOKEN"},
    ),
    "apprise": ChannelKind(
        send=channel_apprise.apprise,
        needs=(frozenset({"url"}),),
        check=channel_apprise.check_apprise,
        people=True,
    ),
}  # fmt: skip


_EVERY_KEY = OF_PEOPLE.union(*(kind.keys for kind in KINDS.values()))


def kind_of(channel_type: str) -> ChannelKind:
    """The kind, or ValidationFailed with those that there are."""
    kind = KINDS.get(channel_type)
    if kind is None:
        raise ValidationFailed("there is no channel of this type", hint=f"one of {', '.join(sorted(KINDS))}")
    return kind


def read_config(channel_type: str, given: Mapping[str, Any], *, shared: bool) -> dict[str, str]:
    """The config as it is kept, or ValidationFailed; values are never repeated.

    `botToken` is `bot_token`, numbers are texts, and lists are texts with commas. What a variable of the server's
    environment says may be missing, but only in a channel of people.
    """
    kind = kind_of(channel_type)
    keys = kind.keys | {"links"} if shared else kind.keys - OF_PEOPLE
    known = ", ".join(sorted(keys))
    if kind.people and not shared:
        raise ValidationFailed(f"{channel_type} is set up by people", hint="use another type, or ask the owner")
    if len(given) > MAX_KEYS or not (given or shared):
        raise ValidationFailed(f"config needs 1 to {MAX_KEYS} keys", hint=f"{channel_type} takes {known}")
    config: dict[str, str] = {}
    for name, value in given.items():
        key = _snake(name)
        if key not in keys:
            # What was mistaken for a key may be a secret.
            shown = key if key in _EVERY_KEY else "key of this name"
            raise ValidationFailed(f"{channel_type} takes no {shown}", hint=f"it takes {known}")
        if key in config:
            raise ValidationFailed(f"config has {key} twice", hint="keep one of the two spellings")
        config[key] = _value(key, value)
    whole = completed(channel_type, config, shared=shared)
    if not any(need <= whole.keys() for need in kind.needs):
        missing = sorted(min((need - whole.keys() for need in kind.needs), key=len))
        raise ValidationFailed(f"{channel_type} also needs {', '.join(missing)}", hint=f"it takes {known}")
    return config


def completed(channel_type: str, config: Mapping[str, str], *, shared: bool) -> dict[str, str]:
    """The config with what the environment adds.

    Nothing is added to a channel of an agent, nor to one whose server somebody chose: either could carry the owner's
    secrets away.
    """
    chosen = any(key.endswith("_url") for key in config)
    if not shared or chosen:
        return dict(config)
    kind = kind_of(channel_type)
    added = {key: os.environ[name] for key, name in kind.environment.items() if os.environ.get(name)}
    return {**added, **config}


async def check_places(client: GuardedClient, channel_type: str, config: Mapping[str, str]) -> None:
    """Refuse a complete config that leads to where nothing may be sent. A name that leads nowhere just now passes."""
    kind = kind_of(channel_type)
    for key, value in config.items():
        with contextlib.suppress(ServiceUnavailable, TimedOut):
            if key.endswith("_url") or (key == "url" and kind.check is None):
                await client.check(value, plain=kind.plain)
    if kind.check is not None:
        with contextlib.suppress(ServiceUnavailable, TimedOut):
            await kind.check(client, config)


async def warning_of(client: GuardedClient, channel_type: str, config: Mapping[str, str]) -> str:
    """What is unsafe about a complete config of a channel of people; nothing if the other side does not say."""
    kind = kind_of(channel_type)
    if kind.warn is not None:
        with contextlib.suppress(RookeryError):
            return await kind.warn(client, config)
    return ""


async def send_by(
    client: GuardedClient, channel_type: str, config: Mapping[str, str], notice: Notice, *, shared: bool
) -> str | None:
    """Tell something; what the other side calls it, if it says so.

    Raises what can be tried again as retryable errors, everything else as others. No error repeats a value of the
    config, or anything else that the other side said.
    """
    kind = kind_of(channel_type)
    whole = completed(channel_type, config, shared=shared)
    if not any(need <= whole.keys() for need in kind.needs):
        raise ValidationFailed(f"the config of {channel_type} is not complete any more", hint="set it again")
    try:
        return await kind.send(client, whole, notice)
    except RookeryError:
        raise
    except Exception as error:
        raise ServiceUnavailable(f"{channel_type} failed ({type(error).__name__})") from None


def carries_links(channel_type: str, config: Mapping[str, str]) -> bool:
    """Whether asks that go by this channel of people have a link that answers them."""
    return config.get("links", "yes" if kind_of(channel_type).links else "no") == "yes"


def listens(channel_type: str, config: Mapping[str, str]) -> bool:
    """Whether what people say in this channel of theirs is an answer."""
    kind = kind_of(channel_type)
    whole = completed(channel_type, config, shared=True)
    return bool(kind.answers) and kind.answers <= whole.keys() and config.get("answers", "yes") == "yes"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _value(key: str, value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value)):
        value = ",".join(cast("list[str]", value))
    if key in SWITCHES:
        if value not in (True, False, "yes", "no"):
            raise ValidationFailed(f"config: {key} must be yes or no")
        value = "yes" if value in (True, "yes") else "no"
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ValidationFailed(f"config: {key} must be text", hint="write it in quotes")
    text = value.strip()
    if not 0 < len(text) <= MAX_VALUE or not text.isprintable():
        raise ValidationFailed(f"config: {key} must have 1 to {MAX_VALUE} characters on one line")
    return text
