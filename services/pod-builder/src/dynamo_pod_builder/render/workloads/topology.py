"""How a PodCliqueSet names the topology domain in which pods are packed.

Releases of Grove differ. Up to 0.1.0-alpha.8 a constraint has only `packDomain`. 0.1.0-alpha.9 adds `topologyName`,
which a part inherits from its set. 0.1.0-alpha.10 adds `pack.required`, and accepts `packDomain` only in sets that
already have it: to these a name can be added if the domain does not change.
"""

from collections.abc import Iterable, Set

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.graph import GraphTopologyConstraint

PACK, PACK_DOMAIN, NAME = "pack", "packDomain", "topologyName"
#: What is written if no schema can be read: every release before 0.1.0-alpha.10 accepts it.
DEFAULT_FIELDS = frozenset({PACK_DOMAIN})
_CONSTRAINT = "topologyConstraint"


def constrain(template: KubeObject, given: GraphTopologyConstraint, served: Set[str], present: Set[str]) -> None:
    """Write the constraints of a set's template, whose parts have their domains as `packDomain`.

    `given`: the constraint of the graph; `served`: the fields that the cluster serves; `present`: those that the set
    has.
    """
    topology, whole = given.cluster_topology_name, given.pack_domain
    for part in _parts(template):
        if _CONSTRAINT in part:
            inherited = "" if whole else topology
            part[_CONSTRAINT] = _constraint(part[_CONSTRAINT][PACK_DOMAIN], inherited, served, present)
    if whole:
        template[_CONSTRAINT] = _constraint(whole, topology, served, present)


def fields_of(sets: Iterable[KubeObject]) -> frozenset[str]:
    """The fields in the constraints of existing sets."""
    templates = [item.get("spec", {}).get("template", {}) for item in sets]
    parts = [part for template in templates for part in (template, *_parts(template))]
    return frozenset(field for part in parts for field in part.get(_CONSTRAINT) or ())


def _constraint(domain: str, topology: str, served: Set[str], present: Set[str]) -> KubeObject:
    known = served | present
    named = {NAME: topology} if topology and NAME in known else {}
    kept = PACK_DOMAIN in present and PACK_DOMAIN in served
    return {**named, **({PACK: {"required": domain}} if PACK in known and not kept else {PACK_DOMAIN: domain})}


def _parts(template: KubeObject) -> Iterable[KubeObject]:
    return (*template.get("cliques", ()), *template.get("podCliqueScalingGroups", ()))
