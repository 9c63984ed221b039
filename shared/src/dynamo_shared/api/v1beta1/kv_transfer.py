"""Where KV caches may move from a prefill worker: to decode workers of the same zone, or of another topology domain."""

from pydantic import Field

from dynamo_shared.api.model import ApiModel, Number
from dynamo_shared.api.v1beta1.component import PackDomain
from dynamo_shared.api.v1beta1.enums import KvTransferEnforcement


class KvTransferPolicy(ApiModel):
    """Limits transfers of KV caches to a topology domain. It cannot be changed later."""

    label_key: str | None = Field(default=None, min_length=1)
    """Node label with the domain, such as topology.kubernetes.io/zone; pods of workers get the value of their node."""
    cluster_topology_name: str | None = Field(default=None, min_length=1)
    """Refused: set labelKey to the label that the ClusterTopology has for the domain."""
    domain: PackDomain
    """Kind of domain, such as zone or rack."""
    enforcement: KvTransferEnforcement = KvTransferEnforcement.REQUIRED
    """required allows only decode workers of the same domain; preferred prefers them."""
    preferred_weight: Number | None = Field(default=None, ge=0, le=1)
    """Weight of the preference, from 0 to 1; required with preferred."""


class GraphExperimental(ApiModel):
    """Features of a graph that may change without notice."""

    kv_transfer_policy: KvTransferPolicy | None = None
    """Where KV caches may move from prefill to decode workers."""
