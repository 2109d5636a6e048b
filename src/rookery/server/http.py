"""The HTTP side of the server: health, metrics and a start page."""

from html import escape
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rookery import __version__

if TYPE_CHECKING:
    from rookery.app import Platform

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Rookery</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }}
body {{ max-width: 42rem; margin: 4rem auto; padding: 0 1.5rem; }}
code {{ font: 0.95em ui-monospace, monospace; padding: 0.1em 0.3em; border-radius: 4px; background: #8882; }}
dt {{ font-weight: 600; margin-top: 1rem; }} dd {{ margin: 0; }}
</style>
</head>
<body>
<h1>Rookery</h1>
<p>Version {version} is running.</p>
<dl>
<dt>Connect an agent</dt>
<dd><code>rookery connect claude</code> (or codex, gemini, opencode, cursor, vscode)</dd>
<dt>See what it may do</dt>
<dd><code>rookery tools</code> and <code>rookery explain ping</code></dd>
<dt>Look after the server</dt>
<dd><code>rookery doctor</code></dd>
</dl>
</body>
</html>
"""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def make_app(platform: "Platform") -> Starlette:
    """The application that uvicorn serves."""

    async def start_page(request: Request) -> Response:
        return HTMLResponse(PAGE.format(version=escape(__version__)), headers=HEADERS)

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(platform.metrics.render(), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/", start_page), Route("/healthz", healthz), Route("/metrics", metrics)])
