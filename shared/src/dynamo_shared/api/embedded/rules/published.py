"""Where the API server means something else by its documents than they say."""

from dynamo_shared.api.embedded.rules.fields import CORE

#: Published as required, and taken as empty ones where they are missing.
NOT_REQUIRED: dict[str, frozenset[str]] = {
    f"{CORE}ClusterTrustBundleProjection": frozenset({"path"}),
    f"{CORE}HTTPHeader": frozenset({"value"}),
    f"{CORE}ISCSIVolumeSource": frozenset({"lun"}),
    f"{CORE}PreferredSchedulingTerm": frozenset({"preference"}),
    f"{CORE}ScaleIOVolumeSource": frozenset({"secretRef"}),
    f"{CORE}SleepAction": frozenset({"seconds"}),
    f"{CORE}Sysctl": frozenset({"value"}),
}

#: Published as optional, and refused where they are missing: names of what a pod takes its data from, and what is run.
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

#: Lists whose items may repeat their key. Of variables that do, the last one counts, and the platform merges them.
REPEATABLE = frozenset({(f"{CORE}Container", "env"), (f"{CORE}EphemeralContainer", "env")})
