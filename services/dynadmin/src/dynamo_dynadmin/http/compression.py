"""Compresses answers for clients that accept gzip."""

import gzip
from collections.abc import MutableMapping

from aiohttp import hdrs, web

VARIES = "Accept-Encoding"


def compress(request: web.Request, answer: web.Response) -> None:
    """Compress an answer, unless it is compressed, if the client accepts gzip; caches keep both forms."""
    if hdrs.CONTENT_ENCODING in answer.headers:
        return
    vary(answer.headers, VARIES)
    if takes_gzip(request.headers.get("Accept-Encoding", "")):
        answer.enable_compression(web.ContentCoding.gzip)


class Precompressed:
    """Constant content, compressed once: hundreds of KiB take ten milliseconds, and anyone may request the page."""

    def __init__(self, content: bytes) -> None:
        self._plain, self._compressed = content, gzip.compress(content, mtime=0)

    def answer(self, request: web.Request, content_type: str) -> web.Response:
        """The content in the form that this client accepts."""
        takes = takes_gzip(request.headers.get("Accept-Encoding", ""))
        answer = web.Response(body=self._compressed if takes else self._plain, content_type=content_type)
        vary(answer.headers, VARIES)
        if takes:
            answer.headers[hdrs.CONTENT_ENCODING] = web.ContentCoding.gzip.value
        return answer


def vary(headers: MutableMapping[str, str], name: str) -> None:
    """Declare that an answer also depends on this request header; once, however often this is called."""
    names = headers["Vary"].split(", ") if "Vary" in headers else []
    headers["Vary"] = ", ".join(dict.fromkeys((*names, name)))


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding accepts gzip, with a weight above zero (RFC 9110, 12.5.3)."""
    for each in accepted.split(","):
        coding, *parameters = (part.strip().lower() for part in each.split(";"))
        if coding == "gzip":
            weights = (part.removeprefix("q=") for part in parameters if part.startswith("q="))
            return next(weights, "1").strip("0.") != ""
    return False
