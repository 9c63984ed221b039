"""The page: a few files that `make page` built, with headers that forbid content from other origins.

The page calls the REST API like any other client, and knows only what the API answers.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files

from aiohttp import web

from dynamo_dynadmin.http.compression import VARIES, Precompressed

#: Scripts, styles and requests must be of this origin. No other page may frame this one.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    )
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Browsers revalidate each time, and get 304 if nothing changed: a new release shows at once.
    "Cache-Control": "no-cache",
}
_PROBLEM = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title><link rel="stylesheet" href="/page.css">
<main class="sign-in"><h1>{title}</h1><p>{detail}</p><p><a href="/">Sign in again</a></p></main></html>
"""
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_FILES = {"/": "index.html", "/page.js": "page.js", "/page.css": "page.css", "/icon.svg": "icon.svg"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class _File:
    content: Precompressed
    type: str
    etag: str

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The file, or 304 if the browser has it."""
        if any(each.value == self.etag for each in request.if_none_match or ()):
            answer = web.Response(status=304, headers={**_HEADERS, "Vary": VARIES})
        else:
            answer = self.content.answer(request, self.type)
            answer.charset = "utf-8"
            answer.headers.update(_HEADERS)
        answer.etag = self.etag
        return answer


def routes() -> dict[str, Handler]:
    """Handlers of the page's files, by path. Reads the files (a few hundred KiB) once."""
    folder = files("dynamo_dynadmin") / "page"
    return {path: _file(name, (folder / name).read_bytes()).handle for path, name in _FILES.items()}


def of_problem(answer: web.StreamResponse) -> web.Response:
    """A problem as a page for a person: the error, and a link to sign in again."""
    assert isinstance(answer, web.Response)
    problem = json.loads(answer.text or "{}")
    text = _PROBLEM.format(title=escape(problem["title"]), detail=escape(problem["detail"]))
    headers = {**_HEADERS, "Cache-Control": "no-store"}
    return web.Response(text=text, status=answer.status, content_type="text/html", headers=headers)


def _file(name: str, content: bytes) -> _File:
    return _File(Precompressed(content), _TYPES[name.rpartition(".")[2]], sha256(content).hexdigest()[:32])
