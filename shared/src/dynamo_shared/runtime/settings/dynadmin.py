"""The `platform.dynadmin` section: addresses, authentication and limits of the REST API."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from dynamo_shared.runtime.settings.addresses import LISTENS_ON
from dynamo_shared.runtime.settings.base import Duration, PortNumber, Section


class Oidc(Section):
    """OIDC tokens that dynadmin itself verifies. Without an issuer the API server verifies all tokens."""

    issuer: str = Field(
        "",
        pattern=r"^(https?://[^@\s?#]+)?$",
        description="URL of the issuer: the `iss` of its tokens; empty: no OIDC.",
    )
    audience: str = Field("", description="Required `aud` of tokens; must be set if `issuer` is set.")
    jwks_uri: str = Field(
        "",
        pattern=r"^(https?://[^@\s#]+)?$",
        description="URL of the issuer's keys; empty: read from its discovery document.",
    )
    ca_file: Path | None = Field(None, description="Trusted CA certificates, PEM file; unset: those of the system.")
    username_claim: str = Field("sub", min_length=1, description="Claim with the user name.")
    username_prefix: str = Field("", description="Prefix of user names, as the API server's --oidc-username-prefix.")
    groups_claim: str = Field("groups", description="Claim with the list of groups; empty: no groups.")
    groups_prefix: str = Field("", description="Prefix of groups, as the API server's --oidc-groups-prefix.")
    client_id: str = Field(
        "",
        max_length=512,
        description="Client ID of dynadmin at the issuer, for logins with a browser; empty: no such logins.",
    )
    client_secret_file: Path | None = Field(
        None, description="File with the client secret; unset: a public client with PKCE."
    )
    redirect_url: str = Field(
        "",
        pattern=r"^(https?://[^@\s?#]+/api/v1/session/callback)?$",
        description="URL of `/api/v1/session/callback` as browsers reach it; must be set if `clientId` is set.",
    )
    scopes: tuple[str, ...] = Field(("openid", "profile", "email"), description="Scopes that a login requests.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.issuer and not self.audience:
            raise ValueError("platform.dynadmin.oidc.audience is required if platform.dynadmin.oidc.issuer is set")
        if self.client_id and not (self.issuer and self.redirect_url):
            raise ValueError("platform.dynadmin.oidc.clientId requires issuer and redirectUrl")
        return self


class Dynadmin(Section):
    """The REST API."""

    host: str = Field("0.0.0.0", description=LISTENS_ON)  # noqa: S104 - called through a Service
    port: PortNumber = Field(8082, description="Port.")
    cert_dir: Path | None = Field(
        None, description="Directory with tls.crt and tls.key; unset: plain HTTP, for an ingress that terminates TLS."
    )
    audiences: tuple[str, ...] = Field((), description="Accepted audiences of tokens; empty: those of the API server.")
    oidc: Oidc = Oidc()
    session_key_file: Path | None = Field(
        None,
        description="File with the key of browser sessions: 32 bytes as base64, the same for all replicas. Unset: each "
        "replica generates its own at start, and a session is valid only for one replica, until it stops.",
    )
    session: Duration = Field(8 * 3600.0, ge=60, le=7 * 86400, description="Maximum duration of a browser session.")
    cors_origins: tuple[str, ...] = Field((), description="Origins of other pages that may call the API.")
    requests_per_second: float = Field(
        50.0,
        gt=0,
        description="Maximum requests a second of one user, after `burst`. The service accounts of a namespace count as one "
        "user.",
    )
    burst: int = Field(200, ge=1, description="Maximum burst of requests of one user.")
    max_in_flight: int = Field(
        256,
        ge=1,
        le=65536,
        description="Maximum concurrent requests of known users, of one user a quarter of it. Half as many requests without "
        "a user, and half as many whose token is being checked; networks share these. Further requests are rejected; clients "
        "retry later.",
    )
    max_streams: int = Field(2000, ge=1, le=100_000, description="Maximum open streams of one replica.")
    max_streams_per_user: int = Field(100, ge=1, le=100_000, description="Maximum open streams of one user.")
    max_body_bytes: int = Field(3 << 20, ge=1024, le=16 << 20, description="Maximum size of a request body, bytes.")
    heartbeat: Duration = Field(15.0, ge=0.1, le=300, description="Interval of heartbeats on an idle stream.")
    recheck: Duration = Field(
        60.0, ge=0.05, le=60, description="How often the permissions of a stream's user are checked again."
    )
    estimate_within: Duration = Field(300.0, ge=1, le=3600, description="Time limit of an estimate.")
    chat_within: Duration = Field(600.0, ge=1, le=3600, description="Time limit of a chat answer.")
    drain: Duration = Field(
        5.0, le=15, description="How long a stopping replica still serves while it reports not ready."
    )
