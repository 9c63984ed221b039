"""The specification of Secrets: the file that the chart passes to `dynamoctl bootstrap credentials`."""

from pathlib import Path
from typing import Literal

from dynamo_shared.api.field_errors import field_errors
from dynamo_shared.runtime.settings.base import Duration, Section
from pydantic import Field, ValidationError

from dynamo_ctl import files
from dynamo_ctl.errors import CtlError

YEAR = 365 * 86400.0


class Certificate(Section):
    """A Secret of type kubernetes.io/tls, with the authority's certificate as `ca.crt`."""

    secret: str = Field(min_length=1, description="Name of the Secret.")
    authority: str = Field(min_length=1, description="Secret of the authority that signs the certificate.")
    common_name: str = Field(min_length=1, max_length=64, description="Common name of the certificate's subject.")
    names: tuple[str, ...] = Field((), description="DNS names and IP addresses of a server.")
    uses: tuple[Literal["server", "client"], ...] = Field(("server", "client"), min_length=1)


class User(Section):
    """A Secret with the `user` and `password` of a NATS user."""

    service: str = Field(min_length=1, description="The service, which is the user's name.")
    secret: str = Field(min_length=1, description="Name of the Secret.")


class NamespaceCredentials(Section):
    """All Secrets that must exist in one namespace."""

    labels: dict[str, str] = Field(default_factory=dict, description="Labels of every Secret.")
    authorities: tuple[str, ...] = Field((), description="Secrets with an authority and its key.")
    certificates: tuple[Certificate, ...] = ()
    users: tuple[User, ...] = ()
    keys: tuple[str, ...] = Field((), description="Secrets with 32 random bytes, as base64, in the entry `key`.")
    nats_authorization: str = Field("", description="Secret with authorization.conf of the NATS servers; empty: none.")
    nats_authorization_entry: str = Field(
        "authorization.conf",
        min_length=1,
        description="Entry of that Secret with these users; entries of the last releases stay.",
    )
    cluster_name: str = Field(
        "local", description="`platform.clusterName`: users may use only the subjects of this cluster."
    )
    authority_validity: Duration = Field(10 * YEAR, ge=86400)
    certificate_validity: Duration = Field(10 * YEAR, ge=86400)
    rotation: str = Field("", description="A change recreates all Secrets except the authorities.")


def load(path: Path) -> NamespaceCredentials:
    """Read the specification from a file. Raises CtlError that lists every mistake."""
    try:
        desired = NamespaceCredentials.model_validate(files.document(path, "a specification of Secrets"))
    except ValidationError as error:
        raise CtlError("\n".join(f"{path}: {each}" for each in field_errors(error))) from error
    if unknown := {each.authority for each in desired.certificates} - set(desired.authorities):
        raise CtlError(f"{path}: certificates: authorities does not list {', '.join(sorted(unknown))}")
    return desired
