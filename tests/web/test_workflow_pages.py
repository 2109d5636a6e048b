"""Workflows on the console: who sees them, how they are drawn, and what the editor does to a draft."""

import html
import json
import re
from typing import Any

from rookery.identity.store import IdentityStore
from rookery.web.workflow_picture import draw, read_graph
from tests.web.crew import person
from tests.web.guest import Guest, words_of

NODES = [
    {"id": "s", "type": "start", "label": "Start"},
    {"id": "c", "type": "condition", "label": "Bad?", "config": {"expression": "repo == 'shop'"}},
    {"id": "h", "type": "webhook_wait", "label": "Wait for CI"},
    {"id": "e", "type": "end", "label": "End"},
]
EDGES = [
    {"id": "1", "sourceNodeId": "s", "targetNodeId": "c"},
    {"id": "2", "sourceNodeId": "c", "targetNodeId": "h", "condition": "true"},
    {"id": "3", "sourceNodeId": "c", "targetNodeId": "e", "condition": "false"},
    {"id": "4", "sourceNodeId": "h", "targetNodeId": "e"},
]
DRAFT = "/automation/workflows/draft"


async def make(owner: Guest, **given: Any) -> str:
    fleet = owner.fleet
    whole = {"name": "Review", "nodes": NODES, "edges": EDGES} | given
    made = (await fleet.call(fleet.owner, "manage_workflow", action="create", **whole)).workflows[0]["id"]
    await fleet.call(fleet.owner, "manage_workflow", action="activate", workflow_id=made)
    return made


async def run(owner: Guest, workflow_id: str, **given: Any) -> str:
    answer = await owner.post(f"/automation/workflows/{workflow_id}/run", {"input": json.dumps(given)})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def graph_of(page: str) -> dict[str, Any]:
    """What the form of the editor carries."""
    found = re.search(r'<textarea id="graph"[^>]*>(.*?)</textarea>', page, re.S)
    assert found is not None
    return json.loads(html.unescape(found[1]))


async def step(owner: Guest, graph: dict[str, Any] | str, do: str, **fields: str) -> str:
    text = graph if isinstance(graph, str) else json.dumps(graph)
    answer = await owner.post(DRAFT, {"graph": text, "do": do, "status": "draft", **fields})
    assert answer.status_code == 200, answer.text[:1000]
    return answer.text


async def test_whoever_is_not_signed_in_sees_no_workflows(guest: Guest, owner: Guest) -> None:
    workflow_id = await make(owner)
    for path in ("/automation/workflows", f"/automation/workflows/{workflow_id}", "/automation/workflows/new"):
        assert (await guest.get(path)).status_code == 303


async def test_a_viewer_watches_and_starts_nothing(owner: Guest) -> None:
    workflow_id = await make(owner)
    at = await run(owner, workflow_id, repo="shop")
    viewer = person(owner, "viewer")
    page = (await viewer.get(f"/automation/workflows/{workflow_id}")).text
    assert "svg" in page
    assert "Start a run" not in page
    watched = (await viewer.get(at)).text
    assert "Wait for CI" in watched
    assert "/hooks/workflows/" not in watched
    for path in (f"/automation/workflows/{workflow_id}/run", f"{at}/cancel", f"{at}/pause"):
        assert (await viewer.post(path)).status_code == 403
    saved = await viewer.post(
        DRAFT, {"graph": json.dumps({"nodes": NODES, "edges": EDGES}), "name": "x", "do": "save:"}
    )
    assert saved.status_code == 403
    assert "this is not yours to change" in words_of(saved.text)


async def test_workflows_and_runs_of_another_tenant_are_not_there(owner: Guest) -> None:
    fleet = owner.fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    stranger = fleet.actor(tenant="other", as_owner=True)
    theirs = await fleet.call(stranger, "manage_workflow", action="create", name="x", nodes=NODES, edges=EDGES)
    workflow_id = theirs.workflows[0]["id"]
    await fleet.call(stranger, "manage_workflow", action="activate", workflow_id=workflow_id)
    begun = await fleet.call(stranger, "manage_workflow", action="run", workflow_id=workflow_id)
    run_id = begun.runs[0]["id"]
    assert (await owner.get(f"/automation/workflows/{workflow_id}")).status_code == 404
    assert (await owner.get(f"/automation/workflows/{workflow_id}/runs/{run_id}")).status_code == 404
    assert (await owner.post(f"/automation/workflows/{workflow_id}/delete")).status_code == 404


async def test_a_form_without_its_token_starts_nothing(owner: Guest) -> None:
    workflow_id = await make(owner)
    answer = await owner.client.post(f"/automation/workflows/{workflow_id}/run", data={"input": "{}"})
    assert answer.status_code == 403
    assert "It has not run yet" in await owner.words(f"/automation/workflows/{workflow_id}")


async def test_without_workflows_the_page_says_what_they_are(owner: Guest) -> None:
    assert "There are no workflows yet" in await owner.words("/automation/workflows")
    answer = await owner.get("/automation?tab=workflows")
    assert answer.headers["location"] == "/automation/workflows"


async def test_a_run_is_drawn_with_the_state_of_every_node(owner: Guest) -> None:
    workflow_id = await make(owner)
    at = await run(owner, workflow_id, repo="shop")
    page = (await owner.part(at, "run")).text
    states = dict(re.findall(r'class="node [a-z-]+ ([a-z]+)" data-node="(\w)"', page))
    assert {node: state for state, node in states.items()} == {"c": "completed", "h": "waiting", "e": "pending"}
    assert page.count("way taken") == 2
    assert "/hooks/workflows/" in page
    assert await steer(owner, at, "pause") == "paused"
    assert await steer(owner, at, "resume") == "running"
    assert await steer(owner, at, "cancel") == "cancelled"


async def steer(owner: Guest, at: str, verb: str) -> str:
    assert (await owner.post(f"{at}/{verb}")).status_code == 303
    found = re.search(r'<span class="badge [^"]*">(\w+)</span><span class="muted">begun', (await owner.get(at)).text)
    assert found is not None
    return found[1]


async def test_input_that_is_no_object_is_refused(owner: Guest) -> None:
    workflow_id = await make(owner)
    for text in ("[1]", "{", "[" * 100_000):
        answer = await owner.post(f"/automation/workflows/{workflow_id}/run", {"input": text})
        assert answer.status_code == 400, answer.text[:500]


async def test_a_node_is_added_behind_another_and_the_picture_shows_it(owner: Guest) -> None:
    page = (await owner.get("/automation/workflows/new")).text
    page = await step(owner, graph_of(page), "add:", kind="delay", label="Rest <b>a bit</b>", after="start")
    graph = graph_of(page)
    assert [node["id"] for node in graph["nodes"]] == ["start", "end", "rest-b-a-bit-b"]
    ends = {(edge["sourceNodeId"], edge["targetNodeId"]) for edge in graph["edges"]}
    assert ends == {("start", "rest-b-a-bit-b"), ("rest-b-a-bit-b", "end")}
    assert "Rest &lt;b&gt;a bit&lt;/b&gt;" in page
    assert "<b>a bit" not in page
    assert 'name="config:delayMs"' in page


async def test_a_draft_says_what_keeps_it_from_running_and_is_drawn_all_the_same(owner: Guest) -> None:
    loop = [*EDGES, {"id": "5", "sourceNodeId": "h", "targetNodeId": "c"}]
    page = await step(owner, {"nodes": NODES, "edges": loop}, "json:")
    assert "there is a cycle" in words_of(page)
    assert page.count('class="node ') == len(NODES)


async def test_whatever_somebody_writes_into_the_json_is_answered(owner: Guest) -> None:
    for text in (
        "{", "[]", "null", "[" * 50_000, '{"nodes": [], "edges": []}', '{"nodes": [{}], "edges": [{}]}',
        '{"nodes": [{"id": 5, "type": [], "config": "x"}]}', '{"nodes": [{"id": "a", "type": "none"}]}',
    ):  # fmt: skip
        page = await step(owner, text, "json:")
        assert "alert" in page or "Add a node of the kind start" in page
        await step(owner, text, "add:", kind="start", label="S", after="")
        await step(owner, text, "select:a")


async def test_nodes_are_changed_and_removed_with_their_edges(owner: Guest) -> None:
    graph = {"nodes": NODES, "edges": EDGES}
    changed = graph_of(await step(owner, graph, "apply:h", node_label="CI", **{"config:timeoutMs": "5000"}))
    assert changed["nodes"][2] == {"id": "h", "type": "webhook_wait", "label": "CI", "config": {"timeoutMs": 5000}}
    left = graph_of(await step(owner, graph, "remove_node:h"))
    assert [edge["id"] for edge in left["edges"]] == ["1", "3"]
    assert [edge["id"] for edge in graph_of(await step(owner, graph, "remove_edge:4"))["edges"]] == ["1", "2", "3"]


async def test_what_cannot_be_connected_is_said(owner: Guest) -> None:
    graph = {"nodes": NODES, "edges": EDGES}
    for source, target, why in (
        ("s", "s", "cannot lead to itself"),
        ("s", "c", "already"),
        ("s", "x", "that are there"),
    ):
        page = await step(owner, graph, "connect:", source=source, target=target)
        assert why in words_of(page)


async def test_a_long_prompt_survives_the_form_whole(owner: Guest) -> None:
    prompt = "word \N{RIGHT-TO-LEFT OVERRIDE}" + "x" * 30_000
    nodes = [*NODES, {"id": "a", "type": "agent_session", "label": "A", "config": {"prompt": prompt}}]
    page = await step(owner, {"nodes": nodes, "edges": EDGES}, "select:a")
    assert graph_of(page)["nodes"][-1]["config"]["prompt"] == prompt
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page
    assert "x" * 30_000 + "</textarea>" in page


async def test_a_workflow_is_saved_changed_and_deleted(owner: Guest) -> None:
    fields = {
        "graph": json.dumps({"nodes": NODES, "edges": EDGES}),
        "name": "Mine",
        "description": "why",
        "agent": "default",
    }
    made = await owner.post(DRAFT, {**fields, "do": "save_active:", "max_concurrency": "3"})
    at = made.headers["location"]
    words = await owner.words(at)
    assert "Mine" in words
    assert "active" in words
    edit = (await owner.get(f"{at}/edit")).text
    assert graph_of(edit)["edges"] == EDGES
    changed = await owner.post(DRAFT, {**fields, "id": at.rpartition("/")[2], "name": "Ours", "do": "save:"})
    assert changed.status_code == 303
    assert "Ours" in await owner.words(at)
    assert (await owner.post(f"{at}/pause")).status_code == 303
    assert (await owner.post(f"{at}/run", {"input": ""})).status_code == 409
    assert (await owner.post(f"{at}/delete")).headers["location"] == "/automation/workflows"
    assert (await owner.get(at)).status_code == 404


async def test_a_graph_that_cannot_run_is_not_saved(owner: Guest) -> None:
    fields = {"graph": json.dumps({"nodes": NODES[1:], "edges": []}), "name": "Mine", "do": "save:"}
    page = (await owner.post(DRAFT, fields)).text
    assert "there is no start node" in words_of(page)
    assert "There are no workflows yet" in await owner.words("/automation/workflows")


def test_a_picture_of_nothing_is_none_and_strange_states_are_pending() -> None:
    graph, fault = read_graph([], [])
    assert graph is not None
    assert fault
    assert draw(graph) is None
    whole, _ = read_graph(NODES, EDGES)
    assert whole is not None
    picture = draw(whole, {"s": "<b>"})
    assert picture is not None
    assert {box.state for box in picture.boxes} == {"pending"}
