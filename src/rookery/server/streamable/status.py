"""What a person sees who opens the endpoint in a browser. It tells of no tools and of nobody."""

from html import escape

from starlette.types import Send

from rookery import __version__
from rookery.server.streamable.answers import Headers, send_json
from rookery.server.streamable.requests import HttpRequest

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Rookery: MCP endpoint</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }}
body {{ max-width: 42rem; margin: 4rem auto; padding: 0 1.5rem; }}
code {{ font: 0.95em ui-monospace, monospace; padding: 0.1em 0.3em; border-radius: 4px; background: #8882; }}
</style>
</head>
<body>
<h1>This is an MCP endpoint</h1>
<p>Rookery {version} answers here, to agents rather than to browsers.</p>
<p>Connect one: <code>rookery connect claude --http</code></p>
</body>
</html>
"""
SAFE: Headers = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


async def send_status(http: HttpRequest, send: Send, headers: Headers) -> None:
    """A page for browsers, a line of JSON for everything else."""
    if "text/html" not in http.headers.get("accept", ""):
        await send_json(send, 200, {"status": "ok", "server": "rookery", "version": __version__}, (*SAFE, *headers))
        return
    body = PAGE.format(version=escape(__version__)).encode()
    kind = ((b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": 200, "headers": [*kind, *SAFE, *headers]})
    await send({"type": "http.response.body", "body": body})
