"""The database goes away below a running server: everybody is told, nobody is let in, nothing is opened."""

from tests.databases import PostgresDatabases
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.gates import tool_error
from tests.server.streamable.web import head, initialize


async def test_everybody_is_told(make_web: MakeWeb, postgres_dsn: PostgresDatabases, postgres_url: str) -> None:
    async with make_web(postgres_url) as web:
        token = await web.token()
        session = await web.initialize(token)
        assert (await web.http.get("/readyz")).status_code == 200
        postgres_dsn.drop(postgres_url)
        ready = await web.http.get("/readyz")
        assert (ready.status_code, ready.json()) == (503, {"status": "not ready", "reason": "DATABASE_ERROR"})
        assert (await web.http.get("/healthz")).status_code == 200, "the process itself is well"
        opened = await web.post(initialize(), token)
        assert opened.status_code == 500
        assert opened.json()["error"]["data"]["code"] == "DATABASE_ERROR"
        assert "mcp-session-id" not in opened.headers
        assert tool_error(await web.call(session, "ping", token)) == "AUDIT_UNAVAILABLE"
        modern = await web.modern("tools/call", token, name="ping", arguments={})
        assert tool_error(modern) == "AUDIT_UNAVAILABLE"
        ended = await web.http.delete("/mcp", headers=head(token, mcp_session_id=session))
        assert ended.status_code == 200, "a session ends though its end cannot be recorded"


async def test_a_stranger_is_told_nothing_about_the_database(
    make_web: MakeWeb, postgres_dsn: PostgresDatabases, postgres_url: str
) -> None:
    async with make_web(postgres_url) as web:
        postgres_dsn.drop(postgres_url)
        answer = await web.post(initialize(), "rk_" + "a" * 43)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "cannot look up who you are" in answer.json()["error"]["message"]
        assert not any(word in answer.text for word in ("PGSQL", "socket", "FATAL", "does not exist"))


async def test_a_server_whose_files_were_closed_is_not_ready(make_web: MakeWeb) -> None:
    async with make_web() as web:
        assert (await web.http.get("/readyz")).json() == {"status": "ready"}
        web.platform.database.close()
        ready = await web.http.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["status"] == "not ready"
