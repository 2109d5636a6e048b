"""The guarded client: where it goes, where it does not, and what it tells of either."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from rookery.core.errors import ServiceUnavailable, TimedOut, ValidationFailed
from rookery.outgoing.client import GuardedClient, guarded_client
from rookery.settings import Settings
from tests.outgoing.loopback import Names, certified, web_server

pytestmark = pytest.mark.anyio
SECRET = "s3cr3t-in-the-path"
HERE = ("127.0.0.1",)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]",
        "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "224.0.0.1", "192.168.0.1",
    ],
)  # fmt: skip
async def test_this_machine_and_its_network_are_refused(host: str) -> None:
    async with web_server() as web:
        with pytest.raises((ValidationFailed, ServiceUnavailable)) as refusal:
            await GuardedClient().request("GET", f"http://{host}:{web.port}/{SECRET}", plain=True)
        assert web.seen == []
        assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        "", "x", "ftp://example.org/", "file:///etc/passwd", "http://", "https://u:p@example.org/", "http://a:0/",
        "//a/b", "http://a b/", "http://[::1", "http://example.org:99999/", "gopher://a", "http://" + "a" * 3000,
    ],
)  # fmt: skip
async def test_what_is_no_address_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ValidationFailed, match="no address that can be requested"):
        await GuardedClient(HERE).request("GET", address)


async def test_what_is_allowed_is_reached_and_its_answer_read() -> None:
    async with web_server() as web:
        web.says("/a", 201, b'{"x": 1}', X_Said="yes")
        client = guarded_client(Settings(home="/", outgoing_allow=("127.0.0.1",)))
        answer = await client.request("post", f"{web.url}/a?b=c#d", json={"é": 1}, headers={"X-Mine": "y"})
        assert (answer.status, answer.ok, answer.json(), answer.headers["x-said"]) == (201, True, {"x": 1}, "yes")
        (seen,) = web.seen
        assert (seen.method, seen.path, seen.body) == ("POST", "/a?b=c", '{"é": 1}'.encode())
        assert (seen.headers["host"], seen.headers["x-mine"]) == (f"127.0.0.1:{web.port}", "y")
        assert "cookie" not in seen.headers


async def test_a_name_is_looked_up_once_and_connected_to_where_it_was_checked() -> None:
    names = Names(hooks_example=[["127.0.0.2"], ["127.0.0.1"]])
    client = GuardedClient(["127.0.0.2"], resolve=names)
    async with web_server("127.0.0.2") as good, web_server("127.0.0.1", port=good.port) as bad:
        address = f"http://hooks.example:{good.port}/x"
        assert (await client.request("GET", address)).ok
        assert (names.asked, len(good.seen), bad.seen) == (["hooks.example"], 1, [])
        assert good.seen[0].headers["host"] == f"hooks.example:{good.port}"
        with pytest.raises(ValidationFailed, match=r"the host is in this machine's own or a private network"):
            await client.request("GET", address)
        assert bad.seen == []


async def test_an_answer_with_one_private_address_is_refused_as_a_whole() -> None:
    names = Names(mixed_example=[["8.8.8.8", "127.0.0.1"]])
    with pytest.raises(ValidationFailed):
        await GuardedClient(resolve=names).request("GET", "https://mixed.example/")


async def test_a_name_that_the_owner_allowed_may_be_anywhere_but_only_at_its_port() -> None:
    async with web_server() as web:
        names = Names(box_lan=[["127.0.0.1"]])
        assert (
            await GuardedClient([f"box.lan:{web.port}"], resolve=names).request("GET", f"http://box.lan:{web.port}/")
        ).ok
        with pytest.raises(ValidationFailed):
            await GuardedClient(["box.lan:1"], resolve=names).request("GET", f"http://box.lan:{web.port}/")
        assert len(web.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_this_machine_is_refused(status: int) -> None:
    async with web_server("127.0.0.2") as good, web_server("127.0.0.1") as bad:
        for target in (f"{bad.url}/{SECRET}", f"http://localhost:{bad.port}/", f"//127.0.0.1:{bad.port}/"):
            good.says("/", status, Location=target)
            with pytest.raises((ValidationFailed, ServiceUnavailable)) as refusal:
                await GuardedClient(["127.0.0.2"]).request("GET", good.url)
            assert SECRET not in str(refusal.value)
        assert bad.seen == []


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "http://["])
async def test_a_redirect_to_no_address_is_refused(target: str) -> None:
    async with web_server() as web:
        web.says("/", 302, Location=target)
        with pytest.raises(ValidationFailed):
            await GuardedClient(HERE).request("GET", web.url)


async def test_a_redirect_keeps_credentials_only_at_the_same_place() -> None:
    async with web_server() as first, web_server() as second:
        first.says("/a", 307, Location="/b")
        first.says("/b", 307, Location=f"{second.url}/c")
        headers = {"Authorization": "Bearer x", "X-Token": "y", "Content-Type": "text/plain"}
        answer = await GuardedClient(HERE).request("POST", f"{first.url}/a", content=b"told", headers=headers)
        assert answer.ok
        assert first.seen[1].headers["authorization"] == "Bearer x"
        (there,) = second.seen
        assert (there.method, there.body, there.headers["content-type"]) == ("POST", b"told", "text/plain")
        assert not {"authorization", "x-token"} & there.headers.keys()


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_lose_the_body_is_the_answer(status: int) -> None:
    async with web_server() as web:
        web.says("/a", status, Location="/b")
        answer = await GuardedClient(HERE).request("POST", f"{web.url}/a", content=b"told")
        assert (answer.status, answer.ok, len(web.seen)) == (status, False, 1)


async def test_more_than_five_redirects_are_refused() -> None:
    async with web_server() as web:
        for number in range(6):
            web.says(f"/{number}", 302, Location=f"/{number + 1}")
        assert (await GuardedClient(HERE).request("GET", f"{web.url}/1")).ok
        with pytest.raises(ValidationFailed, match="more than 5 times"):
            await GuardedClient(HERE).request("GET", f"{web.url}/0")


async def test_an_answer_that_is_too_long_is_refused_and_a_silent_server_left() -> None:
    async with web_server() as web:
        web.says("/", 200, b"x" * 2000)
        assert len((await GuardedClient(HERE).request("GET", web.url, max_bytes=2000)).body) == 2000
        with pytest.raises(ValidationFailed, match="more than 1999 bytes"):
            await GuardedClient(HERE).request("GET", web.url, max_bytes=1999)
        web.silent = True
        with pytest.raises(TimedOut, match=r"the host did not answer within 0\.2 s"):
            await GuardedClient(HERE).request("GET", f"{web.url}/{SECRET}", timeout_s=0.2)


async def test_https_goes_to_the_checked_address_with_the_name_that_was_asked_for(tmp_path: Path) -> None:
    server, trusting = certified("hooks.example", tmp_path)
    names = Names(hooks_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    client = GuardedClient(HERE, resolve=names, tls=trusting)
    async with web_server(tls=server) as web:
        assert (await client.request("GET", f"https://hooks.example:{web.port}/")).ok
        assert web.names == ["hooks.example"]
        assert web.seen[0].headers["host"] == f"hooks.example:{web.port}"
        with pytest.raises(ServiceUnavailable, match=r"the host could not be reached"):
            await client.request("GET", f"https://other.example:{web.port}/")
        with pytest.raises(ServiceUnavailable):
            await GuardedClient(HERE, resolve=names).request("GET", f"https://hooks.example:{web.port}/")
        web.says("/down", 302, Location=f"http://hooks.example:{web.port}/")
        with pytest.raises(ValidationFailed, match="from https to http"):
            await client.request("GET", f"https://hooks.example:{web.port}/down")
        assert [seen.path for seen in web.seen] == ["/", "/down"]


async def test_secrets_go_over_the_internet_by_https_only() -> None:
    names = Names(api_example=[["8.8.8.8"]])
    client = GuardedClient(resolve=names)
    with pytest.raises(ValidationFailed, match="must be reached by https"):
        await client.check("http://api.example/x")
    await client.check("http://api.example/x", plain=True)
    await client.check("https://api.example/x")


async def test_a_name_that_leads_nowhere_and_a_closed_port_can_be_tried_again() -> None:
    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError

    with pytest.raises(ServiceUnavailable, match=r"the host's name leads nowhere"):
        await GuardedClient(resolve=nowhere).request("GET", "https://gone.example/")
    async with web_server() as web:
        pass
    with pytest.raises(ServiceUnavailable, match=r"the host could not be reached \(ConnectError\)"):
        await GuardedClient(HERE).request("GET", f"{web.url}/{SECRET}")


async def test_the_next_address_is_tried_if_the_first_does_not_answer() -> None:
    async with web_server() as web:
        names = Names(two_example=[["127.0.0.9", "127.0.0.1"]])
        client = GuardedClient(["127.0.0.0/8"], resolve=names)
        assert (await client.request("GET", f"http://two.example:{web.port}/")).ok


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with web_server() as web, web_server() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert (await GuardedClient(HERE).request("GET", web.url)).ok
        assert proxy.seen == []


async def test_no_log_of_ours_or_of_a_library_has_the_path_or_a_header(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with web_server() as web:
        await GuardedClient(HERE).request("POST", f"{web.url}/{SECRET}", json={"a": SECRET}, headers={"X-Key": SECRET})
    assert SECRET not in caplog.text


async def test_slow_work_elsewhere_in_the_process_does_not_keep_names_from_being_looked_up() -> None:
    done = threading.Event()
    busy = [asyncio.create_task(asyncio.to_thread(done.wait, 30)) for _ in range(40)]
    try:
        async with web_server() as web:
            client = GuardedClient(["localhost", "127.0.0.1", "::1"])
            assert (await client.request("GET", f"http://localhost:{web.port}/", timeout_s=5)).ok
    finally:
        done.set()
        await asyncio.gather(*busy)
