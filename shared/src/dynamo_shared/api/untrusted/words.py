"""What others wrote, as this platform may repeat it in a log, an Event, a status or a message: short, without secrets.

Secrets are recognised by their form; no rule can know them all. So what is repeated is also kept short, and whole values
(the entries of a Secret, a container's environment, the body of an answer) are never repeated.
"""

import re
from collections.abc import Iterable
from itertools import islice

MASK = "***"

#: Of problems that one message lists.
_LISTED = 10
#: Of one problem. Characters.
_LONGEST = 300
#: Patterns read this much of a text at most. Characters.
_READ = 100_000

# No pattern begins with an unbounded repetition: each reads every character a bounded number of times.
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(-----END [A-Z ]{0,40}-----)?"), MASK),
    # `//user:password@host`, and without the slashes as keys of docker configurations may be.
    (re.compile(r"(?<=//)[^/@\s]{1,512}@"), f"{MASK}@"),
    (re.compile(r"(?<![^\s\"'=,(])[^\s:/@\"']{1,128}:[^\s/@\"']{1,512}@(?=[\w.-])"), f"{MASK}@"),
    # Signed URLs carry their signature in the query.
    (re.compile(r"(?<=[\w/])\?[\w.%~+-]{1,128}=[^\s'\")]+"), "?..."),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
    # Tokens that say what they are: Hugging Face, GitHub, GitLab, OpenAI, NVIDIA, Slack, AWS, JSON Web Tokens. All that
    # begins like one is masked: a search for the dot of a JSON Web Token would read the rest of the text at each.
    (
        re.compile(
            r"\b(?:hf_|gh[oprsu]_|github_pat_|glpat-|sk-|nvapi-|xox[abprs]-|AKIA|ASIA)[\w-]{10,}"
            r"|\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}"
        ),
        MASK,
    ),
    # `password=x`, `"api_key": "x"`, `--token x`; not `max_tokens=4096` nor `tokenizer: x`.
    (
        re.compile(
            r"((?:passw(?:or)?d|secret|token(?!s|iz)|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization)"
            r"[\w.-]{0,40}[\"']?(?:\s{0,3}=\s{0,3}|:\s{0,3}(?=[\"'\S][^\s]{7})|(?<=--token)\s|(?<=--password)\s))"
            r"(?:\"[^\"]*\"|'[^']*'|[^\s,;&\"'}\])]+)",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
)
#: One of these stands in every text that a pattern changes; most texts have none. Looking for each takes a tenth of the time
#: of an expression of all.
_SUSPECT = (
    "@", "?", "key", "bearer", "basic", "hf_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-", "nvapi-",
    "xox", "akia", "asia", "eyj", "passw", "secret", "token", "credential", "authorization",
)  # fmt: skip

#: What a terminal acts on, and what hides or reorders text: all control characters but tab and line break, what sets the
#: direction of text, blanks without width, and halves of surrogate pairs, which no output can encode. Joiners stay: scripts and
#: emoji are made with them.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def escaped(text: str) -> str:
    r"""A text that a terminal shows and does not act on: what controls it stands as `\u001b`, as JSON and YAML escape it."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def redacted(text: str) -> str:
    """A text without what looks like a password, a token or a key; of a very long text only the beginning."""
    text = text[:_READ]
    # Letters of other alphabets may stand for those of a pattern that leaves the case open.
    if text.isascii() and not _is_suspect(text.lower()):
        return text
    for pattern, mask in _PATTERNS:
        text = pattern.sub(mask, text)
    return text


def _is_suspect(lower: str) -> bool:
    return any(word in lower for word in _SUSPECT)


def quoted(text: str, limit: int = _LONGEST) -> str:
    """Another's text on one line, redacted, at most `limit` characters."""
    return shortened(redacted(_line(text[: 8 * limit])), limit)


def shortened(text: str, limit: int) -> str:
    """A text of at most `limit` characters, as it begins."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def last_of(text: str, limit: int = _LONGEST) -> str:
    """The end of another's text, such as a log, on one line, redacted, at most `limit` characters."""
    line = redacted(_line(text[-8 * limit :]))
    if len(line) <= limit:
        return line
    # From a whole word on, so that no half of a token stands there.
    kept = line[3 - limit :]
    return f"...{kept.partition(' ')[2] if ' ' in kept else ''}"


def listed(problems: Iterable[str]) -> str:
    """Some problems as one message: the first ones, each short and redacted."""
    first = list(islice(problems, _LISTED + 1))
    more = ["and more"] if len(first) > _LISTED else []
    return "; ".join([*(quoted(each) for each in first[:_LISTED]), *more])


def _line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
