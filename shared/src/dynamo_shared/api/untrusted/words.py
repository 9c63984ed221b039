"""Untrusted text in logs, Events, status and messages of the platform: short, and without secrets.

Secrets are recognized by their form, which cannot find all of them. So quotations are also short, and whole values
(entries of a Secret, the environment of a container, the body of a response) are never quoted.
"""

import re
from collections.abc import Iterable
from itertools import islice

MASK = "***"

#: Limit of the problems in one message.
_LISTED = 10
#: Length limit of one problem. Characters.
_MAX_LENGTH = 300
#: Limit of the text that patterns search. Characters.
_READ = 100_000

# What follows the name of a resource or field in an error, and is harmless (`secrets: Timeout: ...`): the reasons of
# Kubernetes and of this project's client, of 7 letters and more. Any other text after a suspect name may be a secret.
_REASON = (
    "AlreadyExists|BadRequest|Conflict|DeadlineExceeded|Duplicate value|Expired|Forbidden|Garbled|Internal error|"
    "InternalError|Invalid|LoginFailed|MethodNotAllowed|NotAcceptable|NotEstablished|NotFound|NotPublished|"
    "Required value|RequestEntityTooLarge|ServerTimeout|ServiceUnavailable|ShortWatch|Silence|Timeout|TimeoutError|"
    "TooManyRequests|Unauthorized|Unreachable|UnsupportedMediaType|Unsupported value"
)
# No pattern begins with an unbounded repetition, so the time is linear in the length of the text.
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(-----END [A-Z ]{0,40}-----)?"), MASK),
    # `//user:password@host`, also without slashes, as in keys of docker configurations.
    (re.compile(r"(?<=//)[^/@\s]{1,512}@"), f"{MASK}@"),
    (re.compile(r"(?<![^\s\"'=,(])[^\s:/@\"']{1,128}:[^\s/@\"']{1,512}@(?=[\w.-])"), f"{MASK}@"),
    # Signed URLs have their signature in the query.
    (re.compile(r"(?<=[\w/])\?[\w.%~+-]{1,128}=[^\s'\")]+"), "?..."),
    (
        re.compile(
            r"\b(bearer|basic)\s+(?!(?-i:authentication|authorization|credentials)(?:[,:;]?\s|$))[\w.~+/=-]{8,}",
            re.IGNORECASE,
        ),
        rf"\1 {MASK}",
    ),
    # Tokens with a known prefix: Hugging Face, GitHub, GitLab, OpenAI, NVIDIA, Slack, AWS, JSON Web Tokens. The prefix
    # is sufficient: a search for the dots of a JSON Web Token would need quadratic time.
    (
        re.compile(
            r"\b(?:hf_|gh[oprsu]_|github_pat_|glpat-|sk-|nvapi-|xox[abprs]-|AKIA|ASIA)[\w-]{10,}"
            r"|\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}"
        ),
        MASK,
    ),
    # `password=x`, `"api_key": "x"`, `--token x`; not `max_tokens=4096`, `tokenizer: x` nor `secrets: Timeout`.
    (
        re.compile(
            rf"(?!(?:secret|token|credential|authorization)[\w.-]{{0,40}}: (?-i:{_REASON})(?:[,:;]?\s|$))"
            r"((?:passw(?:or)?d|secret|token(?!s|iz)|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization)"
            r"[\w.-]{0,40}[\"']?(?:\s{0,3}=\s{0,3}|:\s{0,3}(?=[\"'\S][^\s]{7})|(?<=--token)\s|(?<=--password)\s))"
            # A text may end before its closing quote.
            r"(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&\"'}\])]+)",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
)
#: Every text that matches a pattern contains one of these, and most texts contain none. This search takes a tenth of
#: the time of an equivalent expression.
_SUSPECT = (
    "@", "?", "key", "bearer", "basic", "hf_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-", "nvapi-",
    "xox", "akia", "asia", "eyj", "passw", "secret", "token", "credential", "authorization",
)  # fmt: skip

#: Control characters (except tab and newline), characters that change the direction of text, invisible characters, and
#: unpaired surrogates, which cannot be encoded. Joiners are allowed, because scripts and emoji need them.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def escaped(text: str) -> str:
    r"""A text that a terminal shows and does not act on: what controls it stands as `\u001b`, as JSON and YAML escape it."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def redacted(text: str) -> str:
    """The text (limited to _READ characters), with a mask instead of each likely password, token or key."""
    text = text[:_READ]
    # With IGNORECASE, some non-ASCII letters match ASCII letters of a pattern.
    if text.isascii() and not _is_suspect(text.lower()):
        return text
    for pattern, mask in _PATTERNS:
        text = pattern.sub(mask, text)
    return text


def _is_suspect(lower: str) -> bool:
    return any(word in lower for word in _SUSPECT)


def quoted(text: str, limit: int = _MAX_LENGTH) -> str:
    """An untrusted text on one line, redacted, with at most `limit` characters."""
    return shortened(redacted(_line(text[: 8 * limit])), limit)


def shortened(text: str, limit: int) -> str:
    """The text, truncated to `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def last_of(text: str, limit: int = _MAX_LENGTH) -> str:
    """The end of an untrusted text (such as a log) on one line, redacted, with at most `limit` characters."""
    line = redacted(_line(text[-8 * limit :]))
    if len(line) <= limit:
        return line
    # Begins with a whole word, because a part of a token would not be recognized.
    tail = line[3 - limit :]
    return f"...{tail.partition(' ')[2] if ' ' in tail else ''}"


def listed(problems: Iterable[str]) -> str:
    """Problems as one message: the first ones, each short and redacted."""
    first = list(islice(problems, _LISTED + 1))
    more = ["and more"] if len(first) > _LISTED else []
    return "; ".join([*(quoted(each) for each in first[:_LISTED]), *more])


def _line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
