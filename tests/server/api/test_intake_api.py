"""Requests that come over HTTP."""

from rookery.engine.tables import intake_requests
from rookery.server.api.describing import document
from tests.server.api.conftest import Site


def kept(site: Site) -> list[tuple[str, str, str]]:
    rows = site.fleet.platform.database.direct(lambda tx: tx.all(intake_requests.select()))
    return sorted((row.text, row.source, row.state) for row in rows)


async def test_whoever_has_no_token_or_no_right_is_refused_and_nothing_is_kept(site: Site) -> None:
    body = {"requests": ["the export is slow"]}
    async with site.client() as client:
        assert (await client.post("/api/intake", json=body)).status_code == 401
    async with site.client(site.token(scopes="tracker:read")) as client:
        assert (await client.post("/api/intake", json=body)).status_code == 403
    await site.fleet.call(site.fleet.owner, "create_agent", name="ada")
    async with site.client(site.token(agent="ada")) as client:
        assert (await client.post("/api/intake", json=body)).status_code == 403
    assert kept(site) == []


async def test_what_is_no_request_is_refused_in_words(site: Site) -> None:
    async with site.client(site.token()) as client:
        for body in ({}, {"requests": "one"}, {"requests": [""]}, {"requests": [1]}, {"texts": ["one"]}, []):
            answer = await client.post("/api/intake", json=body)
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["message"]
        assert (await client.get("/api/intake")).status_code == 405
    assert kept(site) == []


async def test_requests_are_kept_once_and_each_has_its_id(site: Site) -> None:
    async with site.client(site.token()) as client:
        first = await client.post("/api/intake", json={"requests": ["the export is slow", "a dark theme"]})
        assert first.status_code == 201
        again = (await client.post("/api/intake", json={"requests": ["The export is slow"]})).json()["requests"]
    one, _ = first.json()["requests"]
    assert one["known"] is False
    assert again == [{"id": one["id"], "state": "new", "known": True}]
    assert kept(site) == [("a dark theme", "http", "new"), ("the export is slow", "http", "new")]


async def test_the_description_for_programs_has_it(site: Site) -> None:
    told = document(site.fleet.platform.registry)["paths"]["/api/intake"]["post"]
    assert told["operationId"] == "submit_requests"
    assert "requests" in told["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert "201" in told["responses"]
