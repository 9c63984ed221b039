"""The `platform.dynadmin` section: where the REST API listens, who its callers are, and how much of it they get."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from dynamo_shared.runtime.settings.addresses import LISTENS_ON
from dynamo_shared.runtime.settings.base import Duration, PortNumber, Section


class Oidc(Section):
    """Tokens of an issuer that are verified here. Without an issuer the API server verifies all tokens."""

    issuer: str = Field(
        "", pattern=r"^(https?://[^@\s?#]+)?$", description="URL of the issuer, as `iss` of its tokens; empty: none."
    )
    audience: str = Field("", description="`aud` that tokens must have; required with an issuer.")
    jwks_uri: str = Field(
        "",
        pattern=r"^(https?://[^@\s#]+)?$",
        description="URL of the issuer's keys; empty: from its discovery document.",
    )
    ca_file: Path | None = Field(None, description="Authorities to trust, PEM; unset: the system's.")
    username_claim: str = Field("sub", min_length=1, description="Claim that is the user's name.")
    username_prefix: str = Field("", description="Prefix of the user name, like the API server's flag of this name.")
    groups_claim: str = Field("groups", description="Claim that lists groups; empty: none.")
    groups_prefix: str = Field("", description="Prefix of each group.")
    client_id: str = Field(
        "",
        max_length=512,
        description="Client id of this service at the issuer, for browsers to log in; empty: they cannot.",
    )
    client_secret_file: Path | None = Field(None, description="Its secret; unset: a public client, by PKCE alone.")
    redirect_url: str = Field(
        "",
        pattern=r"^(https?://[^@\s?#]+/api/v1/session/callback)?$",
        description="URL of `/api/v1/session/callback` as browsers reach it; required with a client id.",
    )
    scopes: tuple[str, ...] = Field(("openid", "profile", "email"), description="Scopes that a login asks for.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.issuer and not self.audience:
            raise ValueError("platform.dynadmin.oidc.audience is required where an issuer is named")
        if self.client_id and not (self.issuer and self.redirect_url):
            raise ValueError("platform.dynadmin.oidc.clientId needs issuer and redirectUrl")
        return self


class Dynadmin(Section):
    """The REST API."""

    host: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - called through a Service
    port: PortNumber = Field(8082, description="Port.")
    cert_dir: Path | None = Field(
        None, description="Folder of tls.crt and tls.key; unset: plain HTTP, for an ingress that terminates TLS."
    )
    audiences: tuple[str, ...] = Field((), description="Audiences that tokens must have; empty: the API server's own.")
    oidc: Oidc = Oidc()
    session_key_file: Path | None = Field(
        None,
        description="Key of browser sessions, 32 bytes as base64, the same for all replicas; unset: made at the start, "
        "so that sessions hold for one replica and until it ends.",
    )
    session: Duration = Field(8 * 3600.0, ge=60, le=7 * 86400, description="How long a browser session lasts at most.")
    cors_origins: tuple[str, ...] = Field((), description="Origins of other pages that may call the API; none.")
    requests_per_second: float = Field(
        50.0,
        gt=0,
        description="Requests a second of one user, after a burst. Service accounts of a namespace are one user for all limits.",
    )
    burst: int = Field(200, ge=1, description="Requests of one user at once.")
    max_in_flight: int = Field(
        256,
        ge=1,
        le=65536,
        description="Requests at the same time, a quarter of them of one user; further requests are refused, and clients "
        "retry later.",
    )
    max_streams: int = Field(2000, ge=1, le=100_000, description="Open streams of one replica.")
    max_streams_per_user: int = Field(100, ge=1, le=100_000, description="Open streams of one user.")
    max_body_bytes: int = Field(3 << 20, ge=1024, le=16 << 20, description="Largest body of a request, bytes.")
    heartbeat: Duration = Field(15.0, ge=0.1, le=300, description="Interval of heartbeats on a silent stream.")
    recheck: Duration = Field(
        60.0, ge=0.05, le=60, description="How often the rights behind a stream are asked for again."
    )
    estimate_within: Duration = Field(300.0, ge=1, le=3600, description="How long an estimate may take.")
    chat_within: Duration = Field(600.0, ge=1, le=3600, description="How long the answer of a chat may take.")
    drain: Duration = Field(5.0, le=15, description="How long an ending replica still serves, not being ready.")
