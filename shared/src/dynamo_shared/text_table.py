"""A table of short texts in little memory, where there are very many of them and each is seldom read.

In a dict an entry takes 100 bytes, and each text 49 bytes more than it has characters. Here the rows of a few keys are one
text, and a row takes some 25 bytes more than its characters. A read takes a microsecond, a write two.
"""

from collections.abc import Iterator

ROWS = 4
"""Rows of a bucket, on the average: they are a text of half a kilobyte, for which Python has blocks that leave no gaps."""


class TextTable:
    """Values by key, both any text. It grows by one bucket at a time (linear hashing)."""

    def __init__(self) -> None:
        # Each row is the key, a tab, the value, and the end of a line; both are escaped, and have no tabs and ends of lines.
        self._buckets = ["\n"]
        self._half = 1
        """the largest power of two that is not above the number of buckets"""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, key: str) -> str | None:
        """The value of a key, None where there is none."""
        key = _escaped(key)
        head = f"\n{key}\t"
        bucket = self._buckets[self._place(key)]
        at = bucket.find(head)
        if at < 0:
            return None
        at += len(head)
        return _unescaped(bucket[at : bucket.index("\n", at)])

    def set(self, key: str, value: str) -> None:
        """Puts a value in the place of the one before."""
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
        """Takes a key out; False where it was not in."""
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
        """Keys and values as they are now, whatever changes meanwhile."""
        for bucket in self._buckets.copy():
            for row in bucket.split("\n")[1:-1]:
                key, _, value = row.partition("\t")
                yield _unescaped(key), _unescaped(value)

    def _place(self, key: str) -> int:
        number = hash(key)
        place = number & (2 * self._half - 1)
        return place if place < len(self._buckets) else number & (self._half - 1)

    def _split(self) -> None:
        """One bucket more: it gets its rows from the one that had them until now."""
        source = len(self._buckets) - self._half
        rows = self._buckets[source].split("\n")[1:-1]
        self._buckets[source] = "\n"
        self._buckets.append("\n")
        if len(self._buckets) == 2 * self._half:
            self._half *= 2
        for row in rows:
            self._buckets[self._place(row[: row.index("\t")])] += f"{row}\n"


def _escaped(text: str) -> str:
    """Names of Roles may have ends of lines."""
    plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if plain else text.encode("unicode_escape").decode("ascii")


def _unescaped(text: str) -> str:
    return text.encode("ascii").decode("unicode_escape") if "\\" in text else text
