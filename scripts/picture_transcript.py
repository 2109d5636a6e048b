"""A session that Claude Code has kept on the machine of the pictures, instead of those of whoever takes them."""

import json
import time
from pathlib import Path
from typing import Any

CWD = "/home/ada/shop"
SAID: tuple[tuple[str, list[dict[str, Any]]], ...] = (
    ("user", [{"type": "text", "text": "Why do the pictures of products load late?"}]),
    (
        "assistant",
        [
            {"type": "thinking", "thinking": "The list may ask for every picture in full size."},
            {"type": "tool_use", "id": "call-1", "name": "Grep", "input": {"pattern": "img src", "path": "shop/"}},
        ],
    ),
    (
        "user",
        [{"type": "tool_result", "tool_use_id": "call-1", "content": "shop/list.html:12\nshop/product.html:30"}],
    ),
    (
        "assistant",
        [
            {
                "type": "text",
                "text": "The list asks for **every picture in full size**, 40 of them at once.\n\n"
                "1. Use the small pictures in `shop/list.html`.\n2. Let those below the fold load when they are near.",
            }
        ],
    ),
)


def write_transcript(folder: Path) -> None:
    """Below the folder that `CLAUDE_CONFIG_DIR` names."""
    place = folder / "projects" / CWD.replace("/", "-")
    place.mkdir(parents=True)
    begun = time.time() - 7200
    with open(place / "5f0c7a52-3b1e-4d7f-9a53-0c2f6b1d8e41.jsonl", "w", encoding="utf-8") as file:
        for number, (role, content) in enumerate(SAID):
            at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(begun + 20 * number))
            spent = {"input_tokens": 5200, "cache_read_input_tokens": 18_400, "output_tokens": 310}
            model = {"id": f"msg-{number}", "model": "claude-opus-4-1", "usage": spent} if role == "assistant" else {}
            line = {
                "type": role,
                "uuid": f"line-{number}",
                "sessionId": "5f0c7a52-3b1e-4d7f-9a53-0c2f6b1d8e41",
                "cwd": CWD,
                "timestamp": at,
                "message": {"role": role, "content": content, **model},
            }
            file.write(json.dumps(line) + "\n")
