"""The registration with the API server: webhook configurations, and the conversion of kinds with two versions.

Rules name every version. So a request comes in the version of its author, and messages name fields that the author
knows.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dynamo_shared.api.crds.kinds import SERVED
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import PLATFORM, labels
from dynamo_shared.api.registry.annotations import RESTORE_CANDIDATE
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    GROUP,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    PODS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)

from dynamo_admission.kinds import CONVERTED, REVIEWED
from dynamo_admission.review import CREATE, Webhook

NAME = "dynamo-admission"
CONVERT_PATH = "/convert"
#: The same as the reference's (operator behaviour, section 9.1). Seconds.
TIMEOUT = 10
INJECT_FROM = "cert-manager.io/inject-ca-from"
BUNDLE = "caBundle"


@dataclass(frozen=True, slots=True)
class Address:
    """One of the two: `url`, or `service` of `namespace` on `port`."""

    namespace: str
    service: str = ""
    port: int = 443
    url: str = ""

    @property
    def host(self) -> str:
        """The name that the API server verifies the certificate against."""
        return urlsplit(self.url).hostname or "" if self.url else f"{self.service}.{self.namespace}.svc"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the certificate must be valid for, the verified name first."""
        return (self.host,) if self.url else (self.host, f"{self.host}.cluster.local", self.host.removesuffix(".svc"))

    def client_config(self, path: str) -> dict[str, Any]:
        """`clientConfig` of webhook configurations and CRDs, without its CAs."""
        if self.url:
            return {"url": self.url.rstrip("/") + path}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
        return {"service": service}


@dataclass(frozen=True, slots=True)
class Registration:
    """The address of the webhooks, and the CAs to trust there.

    `bundle`: CAs in PEM; empty if cert-manager or the user writes them. `inject_from`: the Certificate (namespace/name)
    from which cert-manager writes them, otherwise empty. `restricted`: the only managed namespace, empty for all.
    `owner`: the owner reference of the configurations, or None. `operators`: usernames of the platform's services;
    their new component deployments are not reviewed. `restores`: whether pods start from PodSnapshots.
    """

    address: Address
    bundle: bytes = b""
    inject_from: str = ""
    restricted: str = ""
    owner: KubeObject | None = None
    operators: frozenset[str] = frozenset()
    restores: bool = False

    @property
    def name(self) -> str:
        """Name of both configurations: platforms that manage one namespace have their own."""
        return f"{NAME}-{self.restricted}" if self.restricted else NAME


def path_of(webhook: Webhook) -> str:
    """The path of a webhook."""
    return f"/{webhook}"


def configurations(registration: Registration) -> list[tuple[Resource, KubeObject]]:
    """Both webhook configurations, ready to apply."""
    # Defaults are also added to the changes of a webhook that runs after this one.
    mutating = [{**_review(Webhook.MUTATE, registration), "reinvocationPolicy": "IfNeeded"}]
    if registration.restores:
        mutating.append(_restore(registration))
    scaling = _webhook(Webhook.SCALE, registration, [_scale_rule()])
    webhooks = {
        MUTATING_WEBHOOK_CONFIGURATIONS: mutating,
        VALIDATING_WEBHOOK_CONFIGURATIONS: [_review(Webhook.VALIDATE, registration), scaling],
    }
    return [(resource, _configuration(resource, registration, each)) for resource, each in webhooks.items()]


def conversion(resource: Resource, registration: Registration) -> KubeObject:
    """The conversion part of a CRD, ready to apply."""
    client = _client(registration, CONVERT_PATH)
    return {
        **_head(CUSTOM_RESOURCE_DEFINITIONS, f"{resource.plural}.{resource.group}", registration),
        "spec": {
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
            }
        },
    }


def conversion_patch(crd: KubeObject, registration: Registration) -> KubeObject | None:
    """A merge patch for a CRD that names a Service instead of the desired URL, or the other way round; otherwise None.

    The installer owns the existing field. An apply would add the other field, and the API server refuses both together.
    """
    desired = _client(registration, CONVERT_PATH)
    other = "service" if "url" in desired else "url"
    if not any(client.get(other) for client in _clients(crd)):
        return None
    webhook = {"clientConfig": {other: None, **desired}}
    return {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}


def conversions(registration: Registration) -> list[tuple[Resource, KubeObject]]:
    """The conversion of every kind with two versions."""
    return [(CUSTOM_RESOURCE_DEFINITIONS, conversion(resource, registration)) for resource in CONVERTED]


def bundles_in(obj: KubeObject) -> list[bytes]:
    """The CA bundles of a registered object, one for each of its clients; empty if a client has none."""
    return [base64.b64decode(client.get(BUNDLE) or "") for client in _clients(obj)]


def is_own(crd: KubeObject, registration: Registration) -> bool:
    """Whether the conversion of a CRD calls this platform."""
    desired = registration.address.client_config(CONVERT_PATH)
    return all(desired.items() <= client.items() for client in _clients(crd)) and bool(_clients(crd))


def holds(observed: Any, desired: Any) -> bool:
    """Whether an object from the API server has all applied fields; it may have more (defaults).

    It may have more CAs than desired: during a rotation, two replicas know different CAs.
    """
    if desired == {}:
        return not observed
    if isinstance(desired, dict):
        return isinstance(observed, dict) and all(
            _trusts(observed.get(key), value) if key == BUNDLE else holds(observed.get(key), value)
            for key, value in desired.items()
        )
    if isinstance(desired, list) and all(isinstance(item, dict) for item in desired):
        return (
            isinstance(observed, list)
            and len(observed) == len(desired)
            and all(holds(each, item) for each, item in zip(observed, desired, strict=True))
        )
    return bool(observed == desired)


def is_written(observed: KubeObject, desired: KubeObject, manager: str) -> bool:
    """Whether `manager` has applied exactly this object, without additional CAs and without leftover fields."""
    fields = [
        entry.get("fieldsV1")
        for entry in observed["metadata"].get("managedFields", ())
        if entry.get("manager") == manager and entry.get("operation") == "Apply"
    ]
    desired_bundles = [certificates_of(each) for each in bundles_in(desired)]
    bundles = [certificates_of(each) for each in bundles_in(observed)]
    # Without desired CAs others write them, and an earlier apply may have left some.
    trusted = bundles == desired_bundles if any(desired_bundles) else f"f:{BUNDLE}" not in str(fields)
    return (
        bool(fields)
        and trusted
        and holds(observed, desired)
        and _injected(observed) == _injected(desired)
        and _owners(observed) == _owners(desired)
    )


def certificates_of(bundle: bytes) -> frozenset[bytes]:
    """The certificates of a PEM text, each without line breaks."""
    end = b"-----END CERTIFICATE-----"
    parts = (part.partition(b"-----BEGIN CERTIFICATE-----")[2] for part in bundle.split(end)[:-1])
    return frozenset(b"".join(part.split()) for part in parts)


def _trusts(observed: Any, desired: str) -> bool:
    if not isinstance(observed, str):
        return False
    return certificates_of(base64.b64decode(desired)) <= certificates_of(base64.b64decode(observed))


def _injected(obj: KubeObject) -> str:
    return str(obj["metadata"].get("annotations", {}).get(INJECT_FROM, ""))


def _owners(obj: KubeObject) -> list[str]:
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())]


def _clients(obj: KubeObject) -> list[KubeObject]:
    if "webhooks" in obj:
        return [webhook["clientConfig"] for webhook in obj["webhooks"]]
    client = (obj.get("spec", {}).get("conversion", {}).get("webhook") or {}).get("clientConfig")
    return [client] if client else []


def _head(resource: Resource, name: str, registration: Registration) -> KubeObject:
    metadata: KubeObject = {"name": name}
    if registration.inject_from:
        metadata["annotations"] = {INJECT_FROM: registration.inject_from}
    return {**resource.type_meta, "metadata": metadata}


def _configuration(resource: Resource, registration: Registration, webhooks: list[KubeObject]) -> KubeObject:
    head = _head(resource, registration.name, registration)
    head["metadata"]["labels"] = {labels.APP_PART_OF: PLATFORM, labels.APP_MANAGED_BY: NAME}
    if registration.owner:
        head["metadata"]["ownerReferences"] = [registration.owner]
    return {**head, "webhooks": webhooks}


def _review(webhook: Webhook, registration: Registration) -> KubeObject:
    result = _webhook(webhook, registration, _rules(REVIEWED))
    return {**result, "matchConditions": [_not_of_the_platform(registration)]} if registration.operators else result


def _restore(registration: Registration) -> KubeObject:
    """The webhook for new pods that the pod-builder has labelled: other pods never wait for this service.

    Without an answer a pod starts unchanged, like with the reference (chart of Dynamo 1.5,
    `podCheckpointRestoreFailurePolicy`).
    """
    at, name = "object.metadata.annotations", json.dumps(RESTORE_CANDIDATE)
    marked = f'has({at}) && {name} in {at} && {at}[{name}] == "true"'
    return {
        **_webhook(Webhook.RESTORE, registration, [_rule([PODS.version], [PODS.plural], [CREATE], PODS.group)]),
        "failurePolicy": "Ignore",
        "matchConditions": [{"name": f"candidate.dynamo.{GROUP}", "expression": marked}],
    }


def _not_of_the_platform(registration: Registration) -> KubeObject:
    """Excludes component deployments that the platform creates: admission has reviewed their graphs, which determine
    their content.

    The API server decides by the username: no field of the object counts, because its author may write any field.
    Updates are reviewed, because only an update shows which fields an author in the other version has released.
    """
    # A JSON string is also a CEL string.
    users = ", ".join(json.dumps(each, ensure_ascii=False) for each in sorted(registration.operators))
    created = f"request.operation == {json.dumps(CREATE)}"
    component = f"request.resource.resource == {json.dumps(DYNAMO_COMPONENT_DEPLOYMENTS.plural)}"
    expression = f"!({created} && {component} && request.userInfo.username in [{users}])"
    return {"name": f"not-of-the-platform.dynamo.{GROUP}", "expression": expression}


def _webhook(webhook: Webhook, registration: Registration, rules: list[KubeObject]) -> KubeObject:
    restricted = registration.restricted
    selector = {"matchLabels": {"kubernetes.io/metadata.name": restricted}} if restricted else {}
    return {
        "name": f"{webhook}.dynamo.{GROUP}",
        "clientConfig": _client(registration, path_of(webhook)),
        "rules": rules,
        # An object in a listed version comes unchanged; the API server converts an unlisted version to a listed one.
        "matchPolicy": "Equivalent",
        "namespaceSelector": selector,
        "objectSelector": {},
        # An object that cannot be checked is refused: the other services rely on the check.
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT,
        "admissionReviewVersions": ["v1"],
    }


def _client(registration: Registration, path: str) -> KubeObject:
    client = registration.address.client_config(path)
    if registration.bundle and not registration.inject_from:
        client[BUNDLE] = base64.b64encode(registration.bundle).decode()
    return client


def _rules(resources: Iterable[Resource]) -> list[KubeObject]:
    """One rule for each set of versions. Without subresources: only the platform writes a status."""
    versions: dict[str, list[str]] = {}
    for resource in resources:
        versions.setdefault(resource.plural, []).append(resource.version)
    plurals: dict[tuple[str, ...], list[str]] = {}
    for plural, served in versions.items():
        plurals.setdefault(tuple(sorted(served)), []).append(plural)
    return [_rule(list(served), observed, ["CREATE", "UPDATE"]) for served, observed in plurals.items()]


def _scale_rule() -> KubeObject:
    graphs = [resource.version for resource in SERVED if resource.kind == DYNAMO_GRAPH_DEPLOYMENTS.kind]
    return _rule(sorted(graphs), [f"{DYNAMO_GRAPH_DEPLOYMENTS.plural}/scale"], ["UPDATE"])


def _rule(versions: list[str], plurals: list[str], operations: list[str], group: str = GROUP) -> KubeObject:
    return {
        "apiGroups": [group],
        "apiVersions": versions,
        "resources": plurals,
        "operations": operations,
        "scope": "Namespaced",
    }
