"""The address at which another program tells a waiting node that what it waits for has happened."""

import hashlib
import hmac
from typing import TYPE_CHECKING

import sqlalchemy as sa

from rookery.core.hook import HookAnswer, HookRequest, hook
from rookery.db.server_keys import server_key_in, server_keys
from rookery.db.tx import Tx
from rookery.domains.workflows.engine import HOOK_KEY, settle_node
from rookery.domains.workflows.machine import NodeState
from rookery.domains.workflows.payload import read_object
from rookery.domains.workflows.run_store import Json, node_row
from rookery.jobs.store import Jobs

if TYPE_CHECKING:
    from rookery.core.call import Calls

LIMIT_S = 30.0
_KEY = sa.select(server_keys.c.secret).where(server_keys.c.name == HOOK_KEY)


def hook_path(run_id: str, node_id: str) -> str:
    """Where a delivery for this node is posted, below the server's own address."""
    return f"/hooks/workflows/{run_id}/{node_id}"


def hook_secret(tx: Tx, run_id: str, node_id: str) -> str:
    """What a delivery for this node has to show. It is not kept: all servers on this database come to the same."""
    return _secret(server_key_in(tx, HOOK_KEY), run_id, node_id)


def _secret(key: bytes, run_id: str, node_id: str) -> str:
    return hmac.new(key, f"{run_id}:{node_id}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


@hook("workflows/{run}/{node}")
async def complete(calls: "Calls", request: HookRequest) -> HookAnswer:
    """Complete a waiting node with the JSON object that came. Whoever lacks the secret learns nothing."""
    run_id, node_id = request.path["run"], request.path["node"]
    kept = await calls.database.read(lambda tx: tx.scalar(_KEY), timeout_s=LIMIT_S)
    given = request.headers.get("authorization", "").partition(" ")
    shown = given[2].strip() if given[0].lower() == "bearer" else ""
    right = _secret(bytes.fromhex(kept or ""), run_id, node_id)
    if kept is None or not hmac.compare_digest(right.encode(), shown.encode("utf-8", "replace")):
        return HookAnswer(401, {"error": "the secret is not that of a waiting node"})
    output = read_object(request.body)
    if output is None:
        return HookAnswer(400, {"error": "the body must be a JSON object"})
    return await calls.database.write(
        lambda tx: _deliver(tx, run_id, node_id, output), records=lambda error: [], timeout_s=LIMIT_S
    )


def _deliver(tx: Tx, run_id: str, node_id: str, output: Json) -> HookAnswer:
    row = node_row(tx, run_id, node_id)
    if row is None:
        return HookAnswer(404, {"error": "the run is gone"})
    if row.status == "waiting" and row.job_id is not None:
        # Before the run is held: the job that is over takes the two in this order as well.
        Jobs(tx, row.tenant).cancel(row.job_id, "delivered")
    if row.status == "waiting" and settle_node(tx, run_id, node_id, NodeState("completed", output=output)):
        return HookAnswer(200, {"status": "completed"})
    now = node_row(tx, run_id, node_id) or row
    if now.status == "completed" and now.output == output:
        # The same delivery once more: whoever sent it did not hear that it had arrived.
        return HookAnswer(200, {"status": "completed"})
    return HookAnswer(409, {"error": f"the node is {now.status}, not waiting"})
