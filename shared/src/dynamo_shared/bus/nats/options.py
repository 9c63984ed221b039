"""NATS servers, TLS and identity. Secrets never appear in a repr, a URL or a log line."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dynamo_shared.bus.errors import BusError
from dynamo_shared.wire.subjects import inbox_prefix

DEFAULT_INBOX = "_INBOX"
DEFAULT_SERVER = "nats://127.0.0.1:4222"


class BusOptionsError(BusError):
    """The options contradict each other or name an unreadable file; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsOptions:
    """Servers, TLS and identity. At most one of user and password, token, nkey seed and credentials file is given.

    A password or a token is a text or a file; a line break at the end of the file is ignored.
    `servers`: `nats://` or `tls://` addresses, tried in turn. `replicas`: copies of the streams (3 on a cluster of
    three).
    `first_member`: tag of the server from which a cluster grew; empty: none.
    `connect_timeout`: seconds per attempt. `inbox_prefix`: subject prefix of answers; by default the user's own, the
    only one to which the generated permissions let it subscribe.
    """

    servers: tuple[str, ...] = (DEFAULT_SERVER,)
    name: str = "dynamo"
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = field(default=None)
    user: str = ""
    password: str = field(default="", repr=False)
    password_file: Path | None = None
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    nkey_seed_file: Path | None = None
    credentials_file: Path | None = None
    replicas: int = 1
    first_member: str = ""
    connect_timeout: float = 5.0
    inbox_prefix: str = ""

    def __post_init__(self) -> None:
        for server in self.servers:
            if "@" in urlsplit(server if "://" in server else f"nats://{server}").netloc:
                raise BusOptionsError("a NATS address must not have a user name or secret: use user, password or token")
        if not self.servers:
            raise BusOptionsError("no NATS server is configured")
        password, token = self.password or self.password_file, self.token or self.token_file
        ways = [self.user or password, token, self.nkey_seed_file, self.credentials_file]
        if sum(bool(way) for way in ways) > 1:
            raise BusOptionsError("set only one of user and password, token, NKey seed file, or credentials file")
        if bool(self.cert_file) != bool(self.key_file):
            raise BusOptionsError("the client certificate for NATS and its key must be set together")
        secrets = (self.password_file, self.token_file, self.nkey_seed_file, self.credentials_file)
        for path in (self.ca_file, self.cert_file, self.key_file, *secrets):
            if path is not None and not Path(path).is_file():
                raise BusOptionsError(f"file for NATS does not exist: {path}")

    def ssl_context(self, server: str) -> ssl.SSLContext | None:
        """TLS for a server: always verified, with the system's CAs unless a CA file is given."""
        if not (self.ca_file or self.cert_file or server.startswith("tls://")):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            raise BusOptionsError(f"cannot load TLS files for NATS: {error}") from error
        return context

    @property
    def inbox(self) -> str:
        """Subject prefix of answers."""
        return self.inbox_prefix or (inbox_prefix(self.user) if self.user else DEFAULT_INBOX)

    def identity(self) -> dict[str, Any]:
        """The arguments of `nats.connect` that identify this client. Files are read each time, so rotation works.

        BusOptionsError if a file cannot be read.
        """
        if self.credentials_file:
            return {"user_credentials": str(self.credentials_file)}
        if self.nkey_seed_file:
            return {"nkeys_seed": str(self.nkey_seed_file)}
        if token := _secret(self.token, self.token_file):
            return {"token": token}
        password = _secret(self.password, self.password_file)
        return {"user": self.user, "password": password} if self.user or password else {}


def _secret(value: str, file: Path | None) -> str:
    if file is None:
        return value
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BusOptionsError(
            f"cannot read file for NATS: {file}: {getattr(error, 'strerror', 'not UTF-8')}"
        ) from error
