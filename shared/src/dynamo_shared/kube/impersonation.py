"""The user whose rights a request has, if not this process's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Identity:
    """The acting user, as the API server's authentication describes users."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def headers(self) -> Iterator[tuple[str, str]]:
        """The impersonation headers. A key of `extra` is percent-encoded, since header names allow few characters."""
        yield "Impersonate-User", self.user
        if self.uid:
            yield "Impersonate-Uid", self.uid
        for group in self.groups:
            yield "Impersonate-Group", group
        for key, values in self.extra.items():
            for value in values:
                yield f"Impersonate-Extra-{quote(key.lower(), safe='-._~')}", value
