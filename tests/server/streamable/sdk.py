"""The official client, connected with a token, with a person and a model that answer as in conversation.py."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.server.streamable.conversation import answer_to
from tests.server.streamable.web import PATIENCE_S, Web


async def person(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult.model_validate(answer_to("elicitation/create", {"message": params.message}))


async def model(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    said = params.model_dump(by_alias=True, mode="json")
    return types.CreateMessageResult.model_validate(answer_to("sampling/createMessage", said))


async def folders(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult.model_validate(answer_to("roots/list", {}))


@contextlib.asynccontextmanager
async def connect(web: Web, token: str | None, mode: Any, **more: Any) -> AsyncIterator[Client]:
    """A client in one of the SDK's modes: a revision, `legacy`, or `auto`."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with anyio.fail_after(PATIENCE_S):
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENCE_S, verify=False) as http,
            Client(
                streamable_http_client(f"{web.url}/mcp", http_client=http),
                mode=mode,
                elicitation_callback=person,
                sampling_callback=model,
                list_roots_callback=folders,
                **more,
            ) as client,
        ):
            yield client
