"""Rules of single fields that the API server enforces without publishing them.

They are from its validation code (pkg/apis/core/validation). Only rules that apply to every pod are included: the API
server would refuse the pods of the platform, and the author would see no error.
"""

from typing import Any

from dynamo_shared.api.embedded import scalars
from dynamo_shared.api.embedded.findings import Check, EmbeddedProblem, FindingsLimit, Problems, under
from dynamo_shared.api.embedded.rules import names
from dynamo_shared.api.field_errors import shown

CORE = "io.k8s.api.core.v1."
BATCH = "io.k8s.api.batch.v1."

PORT = (1, 65535)
_ID = (0, 2**31 - 1)
_NEVER_NEGATIVE = (0, 2**63 - 1)
_MODE = (0, 0o777)
_ANY_TIME = (1, 2**63 - 1)
_WEIGHT = (1, 100)


def between(least: int, most: int) -> Check:
    """A number within bounds."""

    def check(value: Any, budget: FindingsLimit) -> Problems:
        if not isinstance(value, int | float) or least <= value <= most:
            return None
        if value < least:
            return budget.problem(f"{shown(value)} is too small; at least {least}")
        return budget.problem(f"{shown(value)} is too large; at most {most}")

    return check


_port_number = between(*PORT)


def port(value: Any, budget: FindingsLimit) -> Problems:
    """A port number or name."""
    return (names.port_name if isinstance(value, str) else _port_number)(value, budget)


def absolute_path(value: Any, budget: FindingsLimit) -> Problems:
    """An absolute path."""
    return None if not value or value.startswith("/") else budget.problem(f"{shown(value)} must be an absolute path")


def each(rule: Check) -> Check:
    """The rule, for each item of a list."""

    def check(value: Any, budget: FindingsLimit) -> Problems:
        collected: list[EmbeddedProblem] = []
        for index, item in enumerate(value):
            if item is not None and (problems := rule(item, budget)):
                collected += under(index, problems)
                if budget.left <= 0:
                    break
        return collected

    return check


def not_negative(value: Any, budget: FindingsLimit) -> Problems:
    """A quantity that is not negative."""
    return budget.problem("must not be negative") if scalars.parsed(value) < 0 else None


_BOUNDS: dict[str, dict[str, tuple[int, int]]] = {
    "ContainerPort": {"containerPort": PORT, "hostPort": (0, 65535)},
    "GRPCAction": {"port": PORT},
    "PodSecurityContext": {"runAsUser": _ID, "runAsGroup": _ID, "fsGroup": _ID},
    "PodSpec": {"activeDeadlineSeconds": (1, 2**31 - 1)},
    "PreferredSchedulingTerm": {"weight": _WEIGHT},
    "Probe": {
        **dict.fromkeys(
            ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold"),
            _NEVER_NEGATIVE,
        ),
        "terminationGracePeriodSeconds": _ANY_TIME,
    },
    "SecurityContext": {"runAsUser": _ID, "runAsGroup": _ID},
    "ServiceAccountTokenProjection": {"expirationSeconds": (600, 2**32)},
    "SleepAction": {"seconds": _NEVER_NEGATIVE},
    "TopologySpreadConstraint": {"maxSkew": (1, 2**31 - 1), "minDomains": (1, 2**31 - 1)},
    "WeightedPodAffinityTerm": {"weight": _WEIGHT},
    **{f"{kind}VolumeSource": {"defaultMode": _MODE} for kind in ("ConfigMap", "Secret", "DownwardAPI", "Projected")},
    **{kind: {"mode": _MODE} for kind in ("KeyToPath", "DownwardAPIVolumeFile")},
}

_JOB_BOUNDS = dict.fromkeys(
    ("activeDeadlineSeconds", "backoffLimit", "completions", "parallelism", "ttlSecondsAfterFinished"), _NEVER_NEGATIVE
)

_FORMS: dict[str, dict[str, Check]] = {
    "Container": {
        "name": names.dns_label,
        # The allowed values are not published.
        "restartPolicy": scalars.choice(("Always", "Never", "OnFailure")),
    },
    **{f"{kind}EnvSource": {"name": names.env_source_name} for kind in ("ConfigMap", "Secret")},
    **{
        f"{kind}KeySelector": {"name": names.dns_subdomain, "key": names.key_of_data}
        for kind in ("ConfigMap", "Secret")
    },
    "ContainerPort": {"name": names.port_name},
    "EmptyDirVolumeSource": {"sizeLimit": not_negative},
    "EnvFromSource": {"prefix": names.variable_name},
    "EnvVar": {"name": names.variable_name},
    "HostAlias": {"ip": names.address, "hostnames": each(names.dns_subdomain)},
    "HTTPGetAction": {"port": port},
    "HTTPHeader": {"name": names.header_name},
    "NFSVolumeSource": {"path": absolute_path},
    "PodAffinityTerm": {"topologyKey": names.qualified_name, "namespaces": each(names.dns_label)},
    "PodReadinessGate": {"conditionType": names.qualified_name},
    "PodResourceClaim": {
        "name": names.dns_label,
        **dict.fromkeys(("resourceClaimName", "resourceClaimTemplateName"), names.dns_subdomain),
    },
    "PodSchedulingGate": {"name": names.qualified_name},
    "PodSecurityContext": {"supplementalGroups": each(between(*_ID))},
    "PodSpec": {
        **dict.fromkeys(
            ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"), names.dns_subdomain
        ),
        **dict.fromkeys(("hostname", "subdomain"), names.dns_label),
    },
    "ResourceClaim": {"request": names.dns_label},
    "Sysctl": {"name": names.sysctl_name},
    "TCPSocketAction": {"port": port},
    "Volume": {"name": names.dns_label},
}

FIELD_RULES: dict[tuple[str, str], Check] = {
    **{(CORE + kind, field): between(*bounds) for kind, fields in _BOUNDS.items() for field, bounds in fields.items()},
    **{(f"{BATCH}JobSpec", field): between(*bounds) for field, bounds in _JOB_BOUNDS.items()},
    **{(CORE + kind, field): rule for kind, fields in _FORMS.items() for field, rule in fields.items()},
}
