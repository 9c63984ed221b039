"""What a graph specifies in Grove's format: topology constraints, and how many replicas start together.

Other parts of an override are ignored: the platform writes the rest of the set.
"""

from dynamo_shared.api import min_available
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.role_templates import LEADER, WORKER
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment
from dynamo_shared.api.v1beta1.provider_override import ProviderOverride
from dynamo_shared.api.validation.provider_override import CLIQUE, CONSTRAINT, FIELD, SET, constraint_in

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.workloads import layout

#: The suffix of the clique of each role.
_ROLES = {LEADER: layout.LEADER, WORKER: layout.WORKER}


def drop_overrides(spec: KubeObject) -> None:
    """Remove overrides from a component, in place: pods do not differ by them, and only Grove reads them.

    The number of replicas that start together becomes a field of the component.
    """
    if len(min_available.min_available_path(spec)) > 1:
        spec[min_available.FIELD] = min_available.min_available(spec)
    spec.pop(FIELD, None)
    for role in spec.get("roles") or ():
        role.pop(FIELD, None)


def override(template: KubeObject, graph: DynamoGraphDeployment) -> None:
    """Write the constraints of a graph's overrides into the template of its set, replacing existing ones."""
    _constrain(template, graph.spec.provider_override, SET)
    cliques = {each["name"]: each for each in template["cliques"]}
    groups = {each["name"]: each for each in template.get("podCliqueScalingGroups", ())}
    for component in graph.spec.components:
        name = names.clique(component.name)
        # The only clique of a group has the name of the group.
        whole = groups.get(name) or cliques.get(name)
        _constrain(whole, component.provider_override, CLIQUE)
        for role in component.roles or ():
            clique = cliques.get(names.clique(component.name, _ROLES.get(role.name, role.name)))
            _constrain(clique, role.provider_override, CLIQUE)


def _constrain(part: KubeObject | None, given: ProviderOverride | None, target: str) -> None:
    constraint = constraint_in(given.value, target) if given is not None else None
    if part is not None and isinstance(constraint, dict):
        part[CONSTRAINT] = constraint
