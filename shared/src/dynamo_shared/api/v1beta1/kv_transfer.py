"""Where a KV cache may go from a prefill worker: to decode workers of the same zone, or of another domain of the topology."""

from pydantic import Field

from dynamo_shared.api.model import ApiModel
from dynamo_shared.api.v1beta1.component import PackDomain
from dynamo_shared.api.v1beta1.enums import KvTransferEnforcement


class KvTransferPolicy(ApiModel):
    """Keeps transfers of KV caches within a domain of the topology. It cannot be changed later."""

    label_key: str | None = Field(default=None, min_length=1)
    """Label of nodes whose value is their domain, such as topology.kubernetes.io/zone; pods of workers get it of their node."""
    cluster_topology_name: str | None = Field(default=None, min_length=1)
    """Refused: write labelKey, the label that the ClusterTopology has for the domain."""
    domain: PackDomain
    """Name of the kind of domain, such as zone or rack."""
    enforcement: KvTransferEnforcement = KvTransferEnforcement.REQUIRED
    """required allows decode workers of the same domain only, preferred favours them."""
    preferred_weight: float | None = Field(default=None, ge=0, le=1)
    """How much preferred favours them, from 0 to 1; required with it."""


class GraphExperimental(ApiModel):
    """Features of a graph that may change without notice."""

    kv_transfer_policy: KvTransferPolicy | None = None
    """Where KV caches may go from prefill to decode workers."""
