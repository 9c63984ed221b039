"""etcd and NATS, each as a single local server, for running the platform and for destructive tests."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from .certs import KeyPair
from .ports import LOOPBACK, PortFile
from .probe import LocalHttp, client_tls
from .process import ManagedProcess


@dataclass(frozen=True)
class ServerTls:
    """TLS of a server. With `client`, clients must present a certificate of `ca`; the probes present `client`."""

    ca: Path
    server: KeyPair
    client: KeyPair | None = None


class LocalServer(ManagedProcess):
    """A server with persistent data. It runs during an `async with` block."""

    data: Path

    async def wipe(self) -> None:
        """Stop the server and delete its data."""
        await self.stop()
        shutil.rmtree(self.data, ignore_errors=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


#: The size of data at which etcd refuses writes: the largest value that etcd recommends, because the default of 2 GiB is
#: too small for 4,000 graphs. Bytes.
QUOTA = 8 << 30


class EtcdServer(LocalServer):
    """One etcd member on 127.0.0.1. It runs without fsync, which is several times faster: a crash of the machine may
    lose its data.

    Users and passwords are set through etcd's API.
    """

    def __init__(self, program: Path, directory: Path, *, tls: ServerTls | None = None) -> None:
        self.data = directory / "data"
        ports = PortFile(directory / "ports.json")
        self.port = ports.port("client")
        self.tls = tls
        self.ports = ports
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{LOOPBACK}:{self.port}"
        peer = f"http://{LOOPBACK}:{ports.port('peer')}"
        command: list[str | Path] = [
            program, "--name=local", f"--data-dir={self.data}", "--log-level=warn",
            f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=local={peer}",
            f"--quota-backend-bytes={QUOTA}", "--unsafe-no-fsync",
        ]  # fmt: skip
        if tls is not None:
            command += [f"--cert-file={tls.server.certificate}", f"--key-file={tls.server.key}"]
            if tls.client is not None:
                command += [f"--trusted-ca-file={tls.ca}", "--client-cert-auth"]
        http = LocalHttp(self.port, client_tls(tls.ca, tls.client) if tls else None)
        super().__init__("etcd", command, directory / "etcd.log", lambda: http.ok("/readyz"))


#: Bytes that streams may reserve. By default, nats-server refuses streams whose limits exceed three quarters of the free
#: disk, also if they use a small part of it.
STORAGE = 64 * 1024**3


@dataclass(frozen=True)
class NatsServerOptions:
    """Options of a NATS server. For authentication set user and password, or a token, or an authorization block.

    `port` 0 picks a free port. `max_payload` is in bytes. `domain` is the JetStream domain. `authorization` and
    `leafnodes` are the blocks of these names in nats-server's configuration. `memory_limit` is Go's GOMEMLIMIT, for
    example 256MiB; "" means the value of the environment.
    """

    port: int = 0
    user: str | None = None
    password: str | None = None
    token: str | None = None
    authorization: Mapping[str, object] | None = field(default=None, repr=False)
    tls: ServerTls | None = None
    max_payload: int = 1 << 20
    domain: str = ""
    leafnodes: Mapping[str, object] | None = field(default=None, repr=False)
    memory_limit: str = ""


class NatsServer(LocalServer):
    """One NATS server with JetStream on 127.0.0.1, and its monitoring port for readiness."""

    def __init__(self, program: Path, directory: Path, options: NatsServerOptions | None = None) -> None:
        self.options = options if options is not None else NatsServerOptions()
        self.data = directory / "jetstream"
        ports = PortFile(directory / "ports.json")
        self.port = ports.port("client", self.options.port)
        self.monitoring_port = ports.port("monitoring")
        self.url = f"{'tls' if self.options.tls else 'nats'}://{LOOPBACK}:{self.port}"
        self.config = directory / "nats.conf"
        http = LocalHttp(self.monitoring_port)
        super().__init__(
            "nats-server",
            # Otherwise the server would send clients addresses that may exist only inside this machine.
            [program, "--config", self.config, "--no_advertise"],
            directory / "nats.log",
            lambda: http.ok("/healthz"),
            environ={**os.environ, "GOMEMLIMIT": limit} if (limit := self.options.memory_limit) else None,
        )

    async def start(self) -> None:
        """Write the configuration, start, and wait until JetStream serves."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.touch(mode=0o600)
        # nats-server reads JSON, except for escaped Unicode.
        self.config.write_text(json.dumps(self._configuration(), indent=2, ensure_ascii=False), encoding="utf-8")
        await super().start()

    def _configuration(self) -> dict[str, object]:
        options = self.options
        configuration: dict[str, object] = {
            # Leaf nodes and their hub distinguish servers by name.
            "server_name": options.domain or "local",
            "listen": f"{LOOPBACK}:{self.port}",
            "http": f"{LOOPBACK}:{self.monitoring_port}",
            "max_payload": options.max_payload,
        }
        domain = {"domain": options.domain} if options.domain else {}
        configuration["jetstream"] = {"store_dir": str(self.data), "max_file_store": STORAGE, **domain}
        if options.leafnodes is not None:
            configuration["leafnodes"] = dict(options.leafnodes)
        if options.token is not None:
            configuration["authorization"] = {"token": options.token}
        elif options.authorization is not None:
            configuration["authorization"] = dict(options.authorization)
        elif options.user is not None:
            configuration["authorization"] = {"user": options.user, "password": options.password or ""}
        if options.tls is not None:
            tls = options.tls
            configuration["tls"] = {
                "cert_file": str(tls.server.certificate),
                "key_file": str(tls.server.key),
                "ca_file": str(tls.ca),
                "verify": tls.client is not None,
            }
        return configuration
