"""Files that browsers fetch: scripts and styles of ours, and those of others that came with the package."""

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

VENDOR = "vendor"
STYLES = "console.css"
"""The one stylesheet of ours, put together from the parts below `styles`."""
FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as it is and packed, its kind, and a short name of exactly this content."""

    body: bytes
    packed: bytes
    media_type: str
    version: str

    @classmethod
    def of(cls, name: str, body: bytes) -> "Asset":
        kind = mimetypes.guess_type(name)[0] or "text/plain"
        return cls(body, gzip.compress(body, mtime=0), kind, hashlib.sha256(body).hexdigest()[:12])


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name."""
    here = resources.files("rookery.web")
    parts = {each.name: each for each in here.joinpath("styles").iterdir() if each.name.endswith(".css")}
    found = {STYLES: b"\n".join(parts[name].read_bytes() for name in sorted(parts))}
    for folder, prefix in ((here / "static", ""), (here / "static" / VENDOR, f"{VENDOR}/")):
        if folder.is_dir():
            found |= {prefix + each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    return {name: Asset.of(name, body) for name, body in found.items() if not name.rpartition("/")[2].startswith(".")}


def static_url(name: str) -> str:
    """The address of a file, which changes with its content."""
    found = assets().get(name)
    return f"/static/{name}" if found is None else f"/static/{name}?v={found.version}"


async def serve_static(request: Request) -> Response:
    """One file. Kept by browsers for as long as its content is the same."""
    found = assets().get(request.path_params["name"])
    if found is None:
        return Response("there is no such file", 404, {"X-Content-Type-Options": "nosniff"}, "text/plain")
    known = request.query_params.get("v") == found.version
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": FOREVER if known else "no-cache"}
    # Packed only here: a page holds a secret beside what others wrote, and its packed size would tell of it.
    if "gzip" in request.headers.get("accept-encoding", ""):
        packed = {**headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return Response(found.packed, 200, packed, found.media_type)
    return Response(found.body, 200, {**headers, "Vary": "Accept-Encoding"}, found.media_type)
