"""Texts that cost their reader more than their writer: YAML, JSON, compressed data, dates, durations, quantities.

The attacks on a cluster and the unit tests of each reader use them.
"""

import base64
import json
import zlib
from collections.abc import Iterator

MIB = 1 << 20
#: Bytes of a compressed value that fit into an annotation.
PACKED = 180_000


def alias_bomb(levels: int = 9, width: int = 9) -> str:
    """Each line repeats the one above several times: a few hundred bytes that expand to `width ** levels` values."""
    lines = [f"a0: &a0 [{', '.join(['lol'] * width)}]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(lines) + "\n"


def alias_bomb_at(field: str, levels: int = 9) -> str:
    """The same as the value of a field, so that an error message about the field might repeat it."""
    return f"{alias_bomb(levels)}{field}: *a{levels - 1}\n"


def self_alias() -> str:
    """A list that contains itself."""
    return "a: &a [*a, *a]\nb: &b {c: *b}\n"


def merges(objects: int = 60, keys: int = 60) -> str:
    """Objects that merge all previous ones."""
    lines = [f"o0: &o0 {{{', '.join(f'k{key}: {key}' for key in range(keys))}}}"]
    lines += [
        f"o{number}: &o{number} {{<<: [{', '.join(f'*o{number - 1}' for _ in range(15))}], n{number}: 1}}"
        for number in range(1, objects)
    ]
    return "\n".join(lines) + "\n"


def merge_chain(size: int = 91_000) -> str:
    """Merges of one object with many keys, `size` long."""
    keys = ", ".join(f"k{key}: {key}" for key in range(2000))
    line = "{<<: *o}"
    count = max(1, (size - len(keys)) // (len(line) + 2))
    return f"o: &o {{{keys}}}\nall: [{', '.join([line] * count)}]\n"


def plain_list(size: int) -> str:
    """A list of small values."""
    return "[" + "1, " * (size // 3 - 1) + "1]"


def plain_map(size: int) -> str:
    """A mapping with small keys."""
    lines, length, number = [], 0, 0
    while length < size:
        line = f"k{number}: {number}"
        lines.append(line)
        length += len(line) + 1
        number += 1
    return "\n".join(lines)


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    """Nested brackets."""
    return opening * depth + closing * depth


def block_nested(depth: int) -> str:
    """Nested block sequences: `- - - -`."""
    return "- " * depth + "1"


def packed_bomb(size: int = 512 * MIB) -> str:
    """A small `preserved-fields` value that decompresses to a huge one."""
    packer = zlib.compressobj(9)
    chunk = b" " * MIB
    content = b""
    for _ in range(size // MIB):
        content += packer.compress(chunk)
        if len(content) >= PACKED:
            break
    else:
        content += packer.flush()
    return "zlib:" + base64.b64encode(content[:PACKED]).decode()


def packed(value: object) -> str:
    """A well-formed packed value."""
    return "zlib:" + base64.b64encode(zlib.compress(json.dumps(value).encode(), 9)).decode()


SCALARS = (
    "1e400",
    "-1e400",
    ".nan",
    ".inf",
    "NaN",
    "Infinity",
    "9" * 5000,
    "0x" + "f" * 5000,
    "0b" + "1" * 20_000,
    "190:20:30:" + "59:" * 5000 + "1",
    "!!binary " + "A" * 1000,
    "!!python/object/apply:os.system ['true']",
    "!!timestamp 9999-12-31T23:59:59.9999999+00:00",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "&a *a",
    "? [complex, key] : 1",
    "%YAML 9.9\n--- a",
    "\ufeff1",
    "'\ud800'".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    "a: b: c",
    "*unknown",
    "<<: [1, 2]",
    "{<<: *x}",
    "\t- a",
    "- a\n b",
    "",
    "null",
    "~",
    "true",
    "[]",
    "'",
    '"\\x00\\u0000"',
    "|\n" + " " * 1000 + "a",
    ">" + "9" * 100,
    "!" * 5000,
    "&" + "a" * 5000 + " 1",
)

DATES = (
    "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999-23:59",
    "0001-01-01T00:00:00+23:59",
    "2026-01-01T00:00:00",
    "2026-13-45T99:99:99Z",
    "now",
    "",
    "9" * 5000,
    "2026-01-01T00:00:00.123456789123456789Z",
    "-0001-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
)

DURATIONS = (
    "9" * 400 + "h",
    "1e400s",
    "-1s",
    "0.0000000000000000001ns",
    "h",
    "1h" * 20_000,
    "",
    "９h",
    "inf",
    "nan",
    "1 h",
)

QUANTITIES = (
    "1e400", "1e-400", "9" * 60 + "Ei", "1e999999999999", "-1", "+1", ".5", "1.", "0.1m", "1Zi", "NaN", "Infinity",
    "", " 1", "1 ", "１", "1e+0.5", "0x10", "1_000", "9" * 5000,
)  # fmt: skip

NAMES = (
    "",
    ".",
    "..",
    "a" * 64,
    "a" * 253,
    "a" * 5000,
    "A",
    "a_b",
    "ä",
    "a/b",
    "../../secrets/x",
    "a%2Fb",
    "a\n",
    "a;b",
    "$(id)",
    "-a",
    "0",
)


def yaml_texts() -> Iterator[tuple[str, str]]:
    """Every expensive or unusual YAML text by name; all but the last ones fit into an annotation."""
    yield "alias-bomb", alias_bomb()
    yield "self-alias", self_alias()
    yield "merges", merges()
    yield "merge-chain-91k", merge_chain()
    yield "list-64k", plain_list(64_000)
    yield "list-250k", plain_list(250_000)
    yield "map-64k", plain_map(64_000)
    yield "map-250k", plain_map(240_000)
    yield "nested-100", nested(100)
    yield "nested-100k", nested(100_000)
    yield "objects-50k", nested(50_000, "{a: ", "}")
    yield "blocks-50k", block_nested(50_000)
    yield "documents-60k", "---\n" * 60_000
    yield "comments-250k", "#" * 249_000 + "\n1"
    yield "quotes-250k", '"' + "\\u0041" * 40_000 + '"'
    yield "tags-250k", "!a " * 1 + "x" * 249_000
    yield "anchors-20k", "[" + ", ".join(f"&a{number} 1" for number in range(20_000)) + "]"
    for number, scalar in enumerate(SCALARS):
        yield f"scalar-{number}", scalar
