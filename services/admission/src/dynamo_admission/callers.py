"""Who may send reviews: all who reach the port, or the API server alone, known by its client certificate.

The API server shows one where its AdmissionConfiguration names a kubeconfig for webhooks. It never shows one to a conversion
webhook, so conversion is open: it answers with what it was asked, and knows nothing of the cluster.
"""

import hmac
import secrets
from collections.abc import Collection, Mapping
from typing import Any

from aiohttp import web

#: What the self-test shows in place of a certificate, whose key only the API server has.
SELF_TEST_HEADER = "X-Dynamo-Self-Test"


class Callers:
    """Decides about requests. `required`: whether a certificate is; `names`: its common names, empty for all."""

    def __init__(self, *, required: bool = False, names: Collection[str] = ()) -> None:
        self._required = required
        self._names = frozenset(names)
        #: Known to this process alone.
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
        """Why the request is not answered; empty where it is."""
        if not self._required or self.is_self_test(request):
            return ""
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        if not certificate:
            return "a client certificate of the API server is needed"
        if self._names and not self._names & common_names(certificate):
            return "the client certificate's common name is not one of platform.admission.clientNames"
        return ""


def common_names(certificate: Mapping[str, Any]) -> frozenset[str]:
    """Common names of a certificate's subject, as `ssl` gives it."""
    return frozenset(value for names in certificate.get("subject", ()) for name, value in names if name == "commonName")
