"""Documents: bring one along, read one, have it read again, or take it out of the vault."""

import asyncio
import base64

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from rookery.core.errors import InvalidParams, RookeryError
from rookery.domains.knowledge.addresses import address
from rookery.domains.knowledge.people import MAX_UPLOAD, upload_document
from rookery.web.highlighting import marked
from rookery.web.knowledge_search import document_path
from rookery.web.routing import action, page
from rookery.web.visit import Visit

HOME = "/knowledge"
ONE = HOME + "/documents/{path:path}"
PIECE = 20_000
"""So many characters of a document are shown at once."""
BODY = MAX_UPLOAD + (1 << 20)


@action(HOME + "/upload", max_body=BODY)
async def upload(visit: Visit) -> Response:
    """Put a file into the vault. The script of the page asks for JSON, a plain form for a page."""
    wants_json = "application/json" in visit.request.headers.get("accept", "")
    try:
        path = await _uploaded(visit)
    except RookeryError as error:
        if not wants_json:
            raise
        said = ". ".join(part for part in (error.message, error.hint) if part)
        return JSONResponse({"refused": said}, error.http)
    done = await visit.done("It can be found now.", to=visit.url(HOME))
    if not wants_json:
        return done
    answer = JSONResponse({"path": path, "href": visit.url(HOME)})
    answer.raw_headers += [each for each in done.raw_headers if each[0] == b"set-cookie"]
    return answer


async def _uploaded(visit: Visit) -> str:
    file = visit.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InvalidParams("file: none was chosen", hint="choose one first")
    content = await file.read(MAX_UPLOAD + 1)
    if len(content) > MAX_UPLOAD:
        raise InvalidParams(f"file: is larger than {MAX_UPLOAD:,} bytes", hint="split it")
    # A browser names the file alone; what others send before it is no part of the name.
    name = file.filename.replace("\\", "/").rpartition("/")[2]
    encoded = await asyncio.to_thread(lambda: base64.b64encode(content).decode())
    given = {"name": name, "content": encoded, "replace": visit.word("replace") == "yes"}
    return (await visit.call(upload_document, given))["path"]


@page(ONE)
async def document(visit: Visit) -> Response:
    """The text of a document in pieces, with the words marked that led here."""
    path, query = visit.path["path"], visit.query.get("q", "")[:1000]
    text = await visit.read(address(path))
    pieces = max(1, -(-len(text) // PIECE))
    wanted = visit.query.get("piece", "1")
    number = min(pieces, max(1, int(wanted[:9]))) if wanted.isdecimal() else 1
    if query and "piece" not in visit.query:
        number = _first_found(text, query, pieces)
    shown = text[(number - 1) * PIECE : number * PIECE]
    return await visit.render(
        "document.html",
        path=path,
        query=query,
        text=marked(shown, query, PIECE),
        piece=number,
        pieces=pieces,
        length=len(text),
        at=document_path(path),
        may_delete=await visit.may("vault_delete"),
        may_update=await visit.may("vault_update"),
    )


def _first_found(text: str, query: str, pieces: int) -> int:
    """The piece in which a word of the query stands first."""
    for number in range(min(pieces, 50)):
        if "<mark>" in marked(text[number * PIECE : (number + 1) * PIECE], query, PIECE):
            return number + 1
    return 1


@action(HOME + "/delete")
async def delete_document(visit: Visit) -> Response:
    """Take a document out of the vault; its file stays."""
    await visit.call("vault_delete", {"path": visit.word("path")})
    return await visit.done("Removed from the vault. Its file is still there.", to=visit.url(HOME))


@action(HOME + "/update")
async def update_document(visit: Visit) -> Response:
    """Read its file again."""
    done = await visit.call("vault_update", {"path": visit.word("path")})
    words = "It has not changed." if done["status"] == "unchanged" else "Read again."
    return await visit.done(words, to=visit.url(HOME), refresh="knowledge")
