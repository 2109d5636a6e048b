"""A folder as Claude Code keeps one, into which tests write transcripts."""

import json
import os
from pathlib import Path
from typing import Any

CWD = "/srv/shop"
SLUG = "-srv-shop"
MODEL = "claude-opus-5-5"
FIRST = "0a1b2c3d-0000-4000-8000-000000000001"
SECOND = "0a1b2c3d-0000-4000-8000-000000000002"
THIRD = "ffffffff-0000-4000-8000-000000000003"


def user(content: Any, **more: Any) -> dict[str, Any]:
    told = {"timestamp": "2026-11-16T12:00:00.000Z", "cwd": CWD, "permissionMode": "default", "isSidechain": False}
    return {"type": "user", "uuid": "u-1", "message": {"role": "user", "content": content}, **told, **more}


def assistant(*blocks: dict[str, Any], message_id: str = "msg_1", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 3000}
    message = {"id": message_id, "role": "assistant", "model": MODEL, "usage": usage, "content": list(blocks)}
    return {"type": "assistant", "uuid": "a-1", "timestamp": "2026-11-16T12:00:01.000Z", "message": message, **more}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def use(call_id: str, tool: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": given}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


class TranscriptFolder:
    """The folder `projects`, and what is put into it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, transcript_id: str, *lines: dict[str, Any] | bytes, slug: str = SLUG, at_s: int = 1_000) -> Path:
        """A transcript of these lines, last written at this time."""
        path = self.root / slug / f"{transcript_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [
            line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() for line in lines
        ]
        path.write_bytes(b"".join(part + b"\n" for part in parts))
        os.utime(path, (at_s, at_s))
        return path
