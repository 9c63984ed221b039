"""Objects other than pods that the API server would refuse: volume claims and ingresses."""

import ipaddress

from dynamo_shared.api import quantity
from dynamo_shared.api.embedded.rules import names, objects
from dynamo_shared.api.embedded.rules.sources import ACCESS_MODES
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.rules import Violations
from dynamo_shared.api.untrusted.reading import entries, mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, COMPONENT, GRAPH, RuleSet, listed
from dynamo_shared.api.validation.view import ComponentView, GraphView

CLAIMS = RuleSet("Claims and ingresses", (GRAPH,))
CLAIMS_AND_INGRESSES = RuleSet("Claims and ingresses", (GRAPH, COMPONENT))

_NO_ACCESS_MODE = "{value} is not an access mode; one of {modes}{hint}"
_NO_OBJECT_NAME = "{problem}"  # the messages for names
_NOTHING_TO_STORE = "must be above 0, not {value}"


@CLAIMS.rule(_NO_ACCESS_MODE, _NOTHING_TO_STORE, _NO_OBJECT_NAME, versions=(ALPHA,), added=True)
def claims_can_be_made(graph: GraphView, _facts: Facts) -> Violations:
    """A claim that the platform creates has a known access mode, valid object names, and a size above zero."""
    for index, claim in entries(graph.spec.get("pvcs")):
        at = ("spec", "pvcs", index)
        if claim.get("create") is not True:
            continue
        for field in ("name", "storageClass"):
            if problem := names.wrong_object_name(text(claim.get(field))):
                yield (*at, field), problem
        mode = text(claim.get("volumeAccessMode"))
        if mode and mode not in ACCESS_MODES:
            modes, hint = listed(map(shown, ACCESS_MODES)), suggestion_for(mode, ACCESS_MODES)
            yield (*at, "volumeAccessMode"), _NO_ACCESS_MODE.format(value=shown(mode), modes=modes, hint=hint)
        size = quantity.amount_of(claim.get("size"))
        if size is not None and size < 0:
            yield (*at, "size"), _NOTHING_TO_STORE.format(value=shown(claim["size"]))


#: Longest DNS name. Characters.
_LONGEST_HOST = 253
_NO_HOST_NAME = (
    "results in the host {host}, which is not a DNS name (lower-case letters, digits, '-' and '.', at most 253 "
    "characters): change {fields}"
)
_ADDRESS = "results in the host {host}, an IP address, but an Ingress needs a DNS name: change {fields}"
_WHOLE_MESH = "'mesh' selects every proxy of the mesh, including those of other namespaces: name a Gateway"
#: Stands for the platform's own domain, which is unknown here.
_SOME_DOMAIN = "local"


@CLAIMS_AND_INGRESSES.rule(_NO_HOST_NAME, _ADDRESS, _WHOLE_MESH, _NO_OBJECT_NAME, versions=(ALPHA,), added=True)
def ingresses_can_be_made(component: ComponentView, _facts: Facts) -> Violations:
    """An ingress has a DNS name as host, object names for class and Secret, valid metadata, and a gateway other than `mesh`."""
    ingress, at = mapping(component.spec.get("ingress")), component.field("ingress")
    host = text(ingress.get("host"))
    if ingress.get("enabled") is not True or not host:
        return
    for location, problem in objects.metadata(ingress):
        yield (*at, *location), problem
    if ingress.get("useVirtualService") is True:
        # Istio itself checks the hosts.
        if ingress.get("virtualServiceGateway") == "mesh":
            yield (*at, "virtualServiceGateway"), _WHOLE_MESH
        return
    parts = {name: text(ingress.get(name)) for name in ("hostPrefix", "host", "hostSuffix")}
    host_name = f"{parts['hostPrefix']}{host}.{parts['hostSuffix'] or _SOME_DOMAIN}"
    fields = " or ".join(name for name, value in parts.items() if value)
    if len(host_name) > _LONGEST_HOST or names.wrong_object_name(host_name.removeprefix("*.")):
        yield (*at, "host"), _NO_HOST_NAME.format(host=shown(host_name), fields=fields)
    elif _is_address(host_name):
        yield (*at, "host"), _ADDRESS.format(host=shown(host_name), fields=fields)
    if problem := names.wrong_object_name(text(ingress.get("ingressControllerClassName"))):
        yield (*at, "ingressControllerClassName"), problem
    if problem := names.wrong_object_name(text(mapping(ingress.get("tls")).get("secretName"))):
        yield (*at, "tls", "secretName"), problem


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
