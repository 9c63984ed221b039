"""The HTTP requests that starting a cluster needs: health probes, and the creation of nodes."""

import asyncio
import http.client
import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .certs import KeyPair
from .ports import LOOPBACK

#: Time limit of a probe, which is repeated. Seconds.
PROBE_WITHIN = 5.0
#: Time limit of other requests, which are not repeated; long enough for a busy machine. Seconds.
_ANSWER_WITHIN = 60.0


def client_tls(ca: Path, client: KeyPair | None = None) -> ssl.SSLContext:
    """A TLS context that trusts `ca` and presents `client`."""
    context = ssl.create_default_context(cafile=str(ca))
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    return context


@dataclass(frozen=True)
class LocalHttp:
    """Requests to one port of 127.0.0.1, over TLS if `tls` is given. Raises OSError if the server does not answer."""

    port: int
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    async def ok(self, path: str) -> bool:
        """Whether GET `path` answers 200 within the time limit of a probe."""
        return (await self.request("GET", path, within=PROBE_WITHIN))[0] == http.client.OK

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        within: float = _ANSWER_WITHIN,
    ) -> tuple[int, bytes]:
        """Status and body of the response; `body` is sent as JSON. `within` is the time limit of each read, in seconds."""
        return await asyncio.to_thread(self._request, method, path, body, within)

    def _request(self, method: str, path: str, body: Any, within: float) -> tuple[int, bytes]:
        connection = (
            http.client.HTTPConnection(LOOPBACK, self.port, timeout=within)
            if self.tls is None
            else http.client.HTTPSConnection(LOOPBACK, self.port, timeout=within, context=self.tls)
        )
        try:
            encoded = None if body is None else json.dumps(body).encode()
            connection.request(method, path, encoded, {"Content-Type": "application/json"} if encoded else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error) or type(error).__name__) from error
        finally:
            connection.close()
