"""The key of a session on its way through the relay: from the environment to the server, and nowhere else."""

from collections.abc import Callable

import pytest

from rookery.relay import SESSION_KEY, UsageError, with_key
from tests.relay.peers import DIRECT, ENTRY, Client, Server

Start = Callable[..., Client]
# Says what serving in the process was given, and what is left of the key in its environment.
LOOKS = f"import os; here.serve_direct = lambda flags: print(flags, os.environ.get({SESSION_KEY!r})) or 7; "


@pytest.mark.parametrize("key", [None, ""])
def test_attaching_without_a_key_is_refused(key: str | None) -> None:
    with pytest.raises(UsageError, match=SESSION_KEY):
        with_key({"attach": True}, key)


@pytest.mark.parametrize("flag", ["agent", "as_owner", "depth", "issue_id", "scheduler", "source", "tool_scope_file"])
def test_nothing_about_the_session_is_chosen_beside_it(flag: str) -> None:
    with pytest.raises(UsageError, match=f"--{flag.replace('_', '-')} cannot be beside"):
        with_key({"attach": True, flag: "x"}, "the-key")


def test_a_place_may_be_named_beside_it() -> None:
    given = {"home": "/srv", "db": "x.db", "direct": True}
    assert with_key({"attach": True, **given}, "the-key") == {"attach": "the-key", **given}


@pytest.mark.parametrize(("flags", "told"), [(["--attach"], "{'attach': 'the-key'} None"), ([], "{} None")])
def test_what_serves_in_this_process_finds_no_key_in_its_environment(
    start: Start, monkeypatch: pytest.MonkeyPatch, flags: list[str], told: str
) -> None:
    monkeypatch.setenv(SESSION_KEY, "the-key")
    code, output, _ = start(*flags, code=DIRECT + LOOKS + ENTRY).end()
    assert (code, output.decode().strip()) == (7, told)


def test_the_server_is_told_the_key_only_of_a_client_that_attaches_itself(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SESSION_KEY, "the-key")
    start("--attach")
    server.accept()
    assert server.hello["flags"] == {"attach": "the-key"}
    start("--agent", "ada")
    server.accept()
    assert server.hello["flags"] == {"agent": "ada"}
