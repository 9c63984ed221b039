"""Compresses answers for clients that accept gzip."""

from collections.abc import MutableMapping

from aiohttp import web

VARIES = "Accept-Encoding"


def compress(request: web.Request, answer: web.Response) -> None:
    """Compress an answer if the client accepts gzip; caches keep both forms."""
    vary(answer.headers, VARIES)
    if takes_gzip(request.headers.get("Accept-Encoding", "")):
        answer.enable_compression(web.ContentCoding.gzip)


def vary(headers: MutableMapping[str, str], name: str) -> None:
    """Declare that an answer also depends on this request header."""
    headers["Vary"] = f"{headers['Vary']}, {name}" if "Vary" in headers else name


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding accepts gzip, with a weight above zero (RFC 9110, 12.5.3)."""
    for each in accepted.split(","):
        coding, *parameters = (part.strip().lower() for part in each.split(";"))
        if coding == "gzip":
            weights = (part.removeprefix("q=") for part in parameters if part.startswith("q="))
            return next(weights, "1").strip("0.") != ""
    return False
