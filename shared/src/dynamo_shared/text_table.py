"""A hash table of short strings that needs less memory than a dict. It suits many entries that are seldom read.

A dict needs 100 bytes for an entry, and 49 bytes more for each string than its characters. This table joins the rows of
a bucket into one string: a row needs about 25 bytes more than its characters. A read takes 1 µs, a write 2 µs.
"""

from collections.abc import Iterator

ROWS = 4
"""Average number of rows in a bucket, a string of about 0.5 kB: Python allocates such strings from pools, without gaps."""


class TextTable:
    """String values by string key; both may have any characters. Grows by one bucket at a time (linear hashing)."""

    def __init__(self) -> None:
        # A bucket is a newline, and for each row: key, tab, value, newline. Escaping removes other tabs and newlines.
        self._buckets = ["\n"]
        self._half = 1
        """the largest power of two that is not above the number of buckets"""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, key: str) -> str | None:
        """The value of a key; None for an unknown key."""
        key = _escaped(key)
        head = f"\n{key}\t"
        bucket = self._buckets[self._place(key)]
        at = bucket.find(head)
        if at < 0:
            return None
        at += len(head)
        return _unescaped(bucket[at : bucket.index("\n", at)])

    def set(self, key: str, value: str) -> None:
        """Set the value of a key."""
        key, value = _escaped(key), _escaped(value)
        head, place = f"\n{key}\t", self._place(key)
        bucket = self._buckets[place]
        at = bucket.find(head)
        if at >= 0:
            at += len(head)
            end = bucket.index("\n", at)
            self._buckets[place] = f"{bucket[:at]}{value}{bucket[end:]}"
            return
        self._buckets[place] = f"{bucket}{key}\t{value}\n"
        self._count += 1
        if self._count > ROWS * len(self._buckets):
            self._split()

    def pop(self, key: str) -> bool:
        """Remove a key; returns whether it was known."""
        key = _escaped(key)
        place = self._place(key)
        bucket = self._buckets[place]
        at = bucket.find(f"\n{key}\t")
        if at < 0:
            return False
        self._buckets[place] = bucket[:at] + bucket[bucket.index("\n", at + 1) :]
        self._count -= 1
        return True

    def items(self) -> Iterator[tuple[str, str]]:
        """A snapshot of keys and values: changes during the iteration do not affect it."""
        for bucket in self._buckets.copy():
            for row in bucket.split("\n")[1:-1]:
                key, _, value = row.partition("\t")
                yield _unescaped(key), _unescaped(value)

    def _place(self, key: str) -> int:
        number = hash(key)
        place = number & (2 * self._half - 1)
        return place if place < len(self._buckets) else number & (self._half - 1)

    def _split(self) -> None:
        """Add a bucket, and distribute the rows of the bucket that it splits over both."""
        source = len(self._buckets) - self._half
        rows = self._buckets[source].split("\n")[1:-1]
        self._buckets[source] = "\n"
        self._buckets.append("\n")
        if len(self._buckets) == 2 * self._half:
            self._half *= 2
        for row in rows:
            self._buckets[self._place(row[: row.index("\t")])] += f"{row}\n"


def _escaped(text: str) -> str:
    # Names of Roles may have newlines.
    plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if plain else text.encode("unicode_escape").decode("ascii")


def _unescaped(text: str) -> str:
    return text.encode("ascii").decode("unicode_escape") if "\\" in text else text
