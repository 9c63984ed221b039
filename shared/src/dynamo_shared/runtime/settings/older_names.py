"""Variables and flags of earlier operators, and the settings that they set (seed 003, Configuration).

A start warns of each one that is given. A variable under today's name wins over one of these.
"""

from __future__ import annotations

#: Older name -> the settings that have its value. A name with dashes is a flag of `dynamoctl run`.
OLDER_NAMES: dict[str, tuple[str, ...]] = {
    "DYNAMO_INGRESS_SUFFIX": ("ingress.hostSuffix",),
    "LOG_LEVEL": ("logging.level",),
    "YATAI_DEPLOYMENT_NAMESPACE": ("namespace.restricted",),
    "YATAI_SYSTEM_NAMESPACE": ("platform.admission.namespace", "platform.standby.namespace"),
    # That operator gave both to workloads, and had neither NATS nor etcd of its own.
    "--natsAddr": ("infrastructure.natsAddress",),
    "--etcdAddr": ("infrastructure.etcdAddress",),
}
