"""Differences between the API server's validation and its OpenAPI documents."""

from dynamo_shared.api.embedded.rules.fields import CORE

#: Fields that are published as required, but may be missing.
NOT_REQUIRED: dict[str, frozenset[str]] = {
    f"{CORE}ClusterTrustBundleProjection": frozenset({"path"}),
    f"{CORE}HTTPHeader": frozenset({"value"}),
    f"{CORE}ISCSIVolumeSource": frozenset({"lun"}),
    f"{CORE}PreferredSchedulingTerm": frozenset({"preference"}),
    f"{CORE}ScaleIOVolumeSource": frozenset({"secretRef"}),
    f"{CORE}SleepAction": frozenset({"seconds"}),
    f"{CORE}Sysctl": frozenset({"value"}),
}

#: Fields that are published as optional, but are required.
REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        [f"{CORE}{prefix}{suffix}" for prefix in ("ConfigMap", "Secret") for suffix in ("EnvSource", "KeySelector")],
        ("name",),
    ),
    f"{CORE}ConfigMapVolumeSource": ("name",),
    f"{CORE}ExecAction": ("command",),
    f"{CORE}ConfigMapProjection": ("name",),
    f"{CORE}SecretProjection": ("name",),
    f"{CORE}SecretVolumeSource": ("secretName",),
}

#: Lists whose items may have the same key. The last of such variables counts; the platform merges them.
REPEATABLE = frozenset({(f"{CORE}Container", "env"), (f"{CORE}EphemeralContainer", "env")})
