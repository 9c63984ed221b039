"""Warning headers of the API server: code, agent and quoted text (RFC 7234, 5.5; Kubernetes writes `299 -`)."""

import re

_HEADER = re.compile(r'\d{3} \S+ "(.*)"')
_ESCAPED = re.compile(r"\\(.)")
_TO_ESCAPE = re.compile(r'["\\]')


def text_of(header: str) -> str:
    """The text of a warning header; the whole header if it has another format."""
    match = _HEADER.fullmatch(header)
    return _ESCAPED.sub(r"\1", match[1]) if match else header


def header_of(text: str) -> str:
    """The warning header with a text."""
    escaped = _TO_ESCAPE.sub(lambda each: f"\\{each[0]}", text)
    return f'299 - "{escaped}"'
