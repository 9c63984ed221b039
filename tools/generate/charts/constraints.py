"""Constraints on the chart's values, by path, as JSON Schema. Entries of a service apply to each service."""

from typing import Any

from dynamo_ctl.services import SERVICES

Schema = dict[str, Any]

_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_NAME = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_AMOUNT: Schema = {
    "type": ["string", "number"],
    "pattern": "^[0-9]+(\\.[0-9]*)?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei|[eE][+-]?[0-9]+)?$",
}
_SIZE: Schema = {"type": "string", "pattern": "^[0-9]+(Mi|Gi|Ti)$"}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
#: As in an image reference: no scheme, and no trailing `/`.
_PART = "[a-z0-9]+([._-]+[a-z0-9]+)*"
_SERVER = "(\\[[0-9a-f:]+\\]|[A-Za-z0-9][A-Za-z0-9.-]*)(:[0-9]{1,5})?"
_REGISTRY: Schema = {"type": "string", "pattern": f"^({_SERVER}(/{_PART})*)?$"}
_REPOSITORY: Schema = {"type": "string", "pattern": f"^({_SERVER}/)?{_PART}(/{_PART})*$"}
_DIGEST: Schema = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}
_POLICY: Schema = {"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}
_LABEL = "^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$"
_LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string", "pattern": _LABEL}}
#: In the Prometheus operator's format, without days.
_INTERVAL: Schema = {"type": "string", "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$", "minLength": 1}
_ENDPOINT: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"scrapeTimeout": _INTERVAL, "relabelings": _OBJECTS, "metricRelabelings": _OBJECTS},
}
_SWITCH: Schema = {"enum": ["auto", True, False]}
_NAMED: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {"name": {"type": "string", "minLength": 1}},
}
_ISSUER: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"name": {"type": "string", "minLength": 1}, "kind": {"type": "string"}, "group": {"type": "string"}},
    "dependentRequired": {"kind": ["name"], "group": ["name"]},
}
_STRINGS: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}}
_URL: Schema = {"type": "string", "pattern": "^(https?://[^@\\s?#]+)?$"}
_DNS_NAME: Schema = {
    "type": "string",
    "pattern": "^([a-z0-9*]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
}
_HOST = "^{scheme}://[^/@\\s]+$"

#: Shared shapes.
DEFINITIONS: dict[str, Schema] = {
    "resources": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "requests": {"type": "object", "additionalProperties": _AMOUNT},
            "limits": {"type": "object", "additionalProperties": _AMOUNT},
        },
    },
    "tolerations": {
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "key": {"type": "string"},
                "operator": {"enum": ["Exists", "Equal", "Lt", "Gt"]},
                "value": {"type": "string"},
                "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                "tolerationSeconds": {"type": "integer"},
            },
        },
    },
}
_RESOURCES: Schema = {"$ref": "#/$defs/resources"}
_TOLERATIONS: Schema = {"$ref": "#/$defs/tolerations"}

OF_A_SERVICE: dict[str, Schema] = {
    "replicas": {"type": "integer", "minimum": 0, "maximum": 100},
    "resources": _RESOURCES,
    "tolerations": _TOLERATIONS,
    "nodeSelector": _TEXTS,
    "topologySpreadConstraints": _OBJECTS,
    "podDisruptionBudget": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: {"type": ["integer", "string"], "pattern": "^[0-9]+%$", "minimum": 0}
            for name in ("minAvailable", "maxUnavailable")
        },
    },
    "terminationGracePeriodSeconds": {"type": "integer", "minimum": 10, "maximum": 3600},
    "progressDeadlineSeconds": {"type": "integer", "minimum": 30},
    "revisionHistoryLimit": {"type": "integer", "minimum": 0},
    "podLabels": _LABELS,
    "podAnnotations": _TEXTS,
    "serviceAccountAnnotations": _TEXTS,
    "serviceAccountName": {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$"},
    "extraEnv": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    "extraVolumes": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    "extraVolumeMounts": {"type": "array", "items": {"type": "object", "required": ["name", "mountPath"]}},
    "extraArgs": {"type": "array", "items": {"type": "string"}},
    "hostUsers": {"type": ["boolean", "null"]},
    "podSpec": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "dnsConfig": {"type": "object"},
            "dnsPolicy": {"enum": ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]},
            "hostAliases": {"type": "array", "items": {"type": "object", "required": ["ip"]}},
            "hostNetwork": {"type": "boolean"},
            "runtimeClassName": {"type": "string", "minLength": 1},
            "schedulerName": {"type": "string", "minLength": 1},
        },
    },
    "autoscaling.minReplicas": {"type": "integer", "minimum": 1},
    "autoscaling.maxReplicas": {"type": "integer", "minimum": 1},
    "autoscaling.targetCPUUtilizationPercentage": {"type": "integer", "minimum": 1, "maximum": 1000},
}

IMAGES = ("image", "plannerImage", "nats.image", "etcd.image", "imageBuilder.buildkitImage")

CONSTRAINTS: dict[str, Schema] = {
    "nameOverride": {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?)?$"},
    "fullnameOverride": {"type": "string", "pattern": "^([a-z]([-a-z0-9]{0,38}[a-z0-9])?)?$"},
    "commonLabels": _LABELS,
    "commonAnnotations": _TEXTS,
    "runAsUser": {"type": ["integer", "null"], "minimum": 1},
    "ipFamilyPolicy": {"enum": ["", "SingleStack", "PreferDualStack", "RequireDualStack"]},
    "commands.resources": _RESOURCES,
    "global.imagePullSecrets": {"type": "array", "items": _NAMED},
    "clusterName": {"type": "string", "minLength": 1, "maxLength": 63},
    "namespaces": {"type": "array", "items": {"type": "string", "pattern": _NAME}},
    "namespaceRestriction.targetNamespace": {"type": "string", "pattern": f"^$|{_NAME}"},
    "webhook.certProvisionMode": {"enum": ["auto", "cert-manager", "manual"]},
    "webhook.issuerRef": _ISSUER,
    "webhook.port": {**_PORT, "minimum": 1024},
    "webhook.check.timeoutSeconds": {"type": "integer", "minimum": 10},
    "imageBuilder.namespace": {"type": "string", "pattern": _NAME},
    "imageBuilder.podSecurity": {"enum": ["privileged", "baseline", "restricted"]},
    "dynadmin.port": {**_PORT, "minimum": 1024},
    "dynadmin.audiences": _STRINGS,
    "dynadmin.corsOrigins": {"type": "array", "items": {"type": "string", "pattern": "^https?://[^/@\\s]+$"}},
    "dynadmin.from": _OBJECTS,
    "dynadmin.serviceAnnotations": _TEXTS,
    "dynadmin.userExtras": {"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9][a-z0-9./%_-]*$"}},
    "dynadmin.constrainedImpersonation": _SWITCH,
    "dynadmin.oidc.issuer": _URL,
    "dynadmin.oidc.jwksUri": {"type": "string", "pattern": "^(https?://[^@\\s#]+)?$"},
    "dynadmin.oidc.redirectUrl": {"type": "string", "pattern": "^(https?://[^@\\s?#]+/api/v1/session/callback)?$"},
    "dynadmin.oidc.scopes": {
        "type": "array",
        "items": {"type": "string", "pattern": "^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$"},
    },
    "dynadmin.oidc.usernameClaim": {"type": "string", "minLength": 1},
    "dynadmin.ingress.host": _DNS_NAME,
    "dynadmin.ingress.annotations": _TEXTS,
    "dynadmin.httpRoute.parentRefs": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    "dynadmin.httpRoute.hostnames": {"type": "array", "items": {**_DNS_NAME, "minLength": 1}},
    "standby.mode": {"enum": ["auto", "always", "never"]},
    "standby.duration": {"type": "string", "pattern": "^([3-9]|[1-5][0-9]|60)s$"},
    "metrics.podMonitor.labels": _LABELS,
    "metrics.podMonitor.interval": _INTERVAL,
    **{f"metrics.{monitor}.endpoint": _ENDPOINT for monitor in ("podMonitor", "graphPodMonitor")},
    "metrics.podMonitor.credentials": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "key": {"type": "string"}},
        "dependentRequired": {"name": ["key"], "key": ["name"]},
    },
    "metrics.graphPodMonitor.enabled": _SWITCH,
    "metrics.graphPodMonitor.labels": _LABELS,
    "metrics.graphPodMonitor.interval": _INTERVAL,
    "metrics.graphPodMonitor.frontendPath": {"type": "string", "pattern": "^/[^\\s?#]*$"},
    "metrics.rules.labels": _LABELS,
    "metrics.rules.alertLabels": _TEXTS,
    "metrics.rules.runbookUrl": {"type": "string", "pattern": "^https?://"},
    "metrics.dashboards.labels": _LABELS,
    "metrics.dashboards.annotations": _TEXTS,
    "grove.enabled": _SWITCH,
    "kai.enabled": _SWITCH,
    "leaderWorkerSet.enabled": _SWITCH,
    "nats.mode": {"enum": ["own", "existing"]},
    "nats.members": {"enum": [1, 3, 5]},
    "nats.users": {
        "type": "array",
        "items": {"enum": ["dynamoctl", "integrator", "commander", "platform", "dynadmin"]},
    },
    "nats.maxPayload": {"type": "integer", "minimum": 1048576, "maximum": 67108864},
    "nats.existing.servers": {
        "type": "array",
        "items": {"type": "string", "pattern": _HOST.format(scheme="(nats|tls)")},
    },
    "nats.existing.credentialSecrets": {**_TEXTS, "propertyNames": {"enum": ["default", *sorted(SERVICES)]}},
    "nats.existing.streamReplicas": {"type": "integer", "minimum": 1, "maximum": 5},
    "etcd.mode": {"enum": ["own", "existing", "none"]},
    "etcd.members": {"enum": [1, 3, 5]},
    "etcd.existing.endpoints": {"type": "array", "items": {"type": "string", "pattern": _HOST.format(scheme="https?")}},
    "credentials.mode": {"enum": ["auto", "cert-manager", "given"]},
    "credentials.issuerRef": _ISSUER,
    "networkPolicy.apiServerPorts": {"type": "array", "items": _PORT, "minItems": 1},
    "networkPolicy.dnsPorts": {"type": "array", "items": _PORT, "minItems": 1},
    "networkPolicy.metricsFrom": _OBJECTS,
    "networkPolicy.eventsFrom": _OBJECTS,
    "networkPolicy.webhookFrom": _OBJECTS,
    "networkPolicy.extraEgress": _OBJECTS,
    "tests.image": {
        "type": ["object", "string"],
        "minLength": 1,
        "additionalProperties": False,
        "properties": {"registry": _REGISTRY, "repository": _REPOSITORY, "tag": {"type": "string"}, "digest": _DIGEST},
    },
    "tests.model": {"type": "string", "minLength": 1},
    "tests.timeoutSeconds": {"type": "integer", "minimum": 10},
    "extraObjects": {"type": "array", "items": {"type": ["object", "string"]}},
    "global.imageRegistry": _REGISTRY,
    **{f"{image}.registry": _REGISTRY for image in IMAGES},
    **{f"{image}.repository": _REPOSITORY for image in IMAGES},
    **{f"{image}.digest": _DIGEST for image in IMAGES},
    **{f"{image}.pullPolicy": _POLICY for image in IMAGES},
    **{f"{part}.resources": _RESOURCES for part in ("nats", "etcd")},
    **{f"{part}.tolerations": _TOLERATIONS for part in ("nats", "etcd")},
    **{f"{part}.nodeSelector": _TEXTS for part in ("nats", "etcd")},
    **{f"{part}.podAnnotations": _TEXTS for part in ("nats", "etcd")},
    **{f"{part}.podLabels": _LABELS for part in ("nats", "etcd")},
    **{f"{part}.topologySpreadConstraints": _OBJECTS for part in ("nats", "etcd")},
    **{f"{part}.persistence.size": _SIZE for part in ("nats", "etcd")},
}
