"""Who may send reviews: every client that reaches the port, or only the API server, identified by its client
certificate.

The API server presents a certificate if its AdmissionConfiguration names a kubeconfig for webhooks. It never presents
one to a conversion webhook, so conversion is open: it answers only with the objects of the request, and reads nothing
from the cluster.
"""

import hmac
import secrets
from collections.abc import Collection, Mapping
from typing import Any

from aiohttp import web

#: The self-test sends this header instead of a certificate, because only the API server has the certificate's key.
SELF_TEST_HEADER = "X-Dynamo-Self-Test"


class Callers:
    """Decides about requests. `required`: whether a certificate is required; `names`: its allowed common names, empty
    for all.
    """

    def __init__(self, *, required: bool = False, names: Collection[str] = ()) -> None:
        self._required = required
        self._names = frozenset(names)
        #: Only this process knows it.
        self._secret = secrets.token_urlsafe(32)

    @property
    def self_test(self) -> dict[str, str]:
        """Headers of requests that this process sends to itself."""
        return {SELF_TEST_HEADER: self._secret}

    def is_self_test(self, request: web.Request) -> bool:
        """Whether this process sent the request to itself."""
        shown = request.headers.get(SELF_TEST_HEADER, "").encode(errors="surrogateescape")
        return hmac.compare_digest(shown, self._secret.encode())

    def refusal(self, request: web.Request) -> str:
        """The reason to refuse the request; empty if it is allowed."""
        if not self._required or self.is_self_test(request):
            return ""
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        if not certificate:
            return "the API server's client certificate is required"
        if self._names and not self._names & common_names(certificate):
            return "the client certificate's common name is not one of platform.admission.clientNames"
        return ""


def common_names(certificate: Mapping[str, Any]) -> frozenset[str]:
    """Common names of a certificate's subject, as `ssl` gives it."""
    return frozenset(value for names in certificate.get("subject", ()) for name, value in names if name == "commonName")
