"""Leases by which a tenant claims that another platform manages the namespace, or that a checkpoint is in progress."""

import asyncio

from dynamo_shared.api import resources
from dynamo_shared.api.registry import labels

from tests.hostile.attack import attack, stored
from tests.hostile.objects import graph, lease, obj
from tests.hostile.world import World

ROW = "Leases"


async def _validated(world: World) -> None:
    """The webhooks still apply to the tenant's namespace."""
    wrong = graph(world.namespace, "not-valid", spec={"backendFramework": "no-such-backend"})
    answer = await world.tenant.create(wrong)
    assert not answer.ok, "an object that is not valid was stored: the webhooks do not hold there any more"


stored(
    "lease-year-9999",
    ROW,
    "a Lease renewed in the year 9999",
    lambda ns: [lease(ns, renewTime="9999-12-31T23:59:59.000000Z", leaseDurationSeconds=2**31 - 1), graph(ns, "held")],
    check=_validated,
    must="all services keep running; webhooks apply",
    linger=3.0,
)
stored(
    "lease-63-years",
    ROW,
    "a Lease of 63 years",
    lambda ns: [lease(ns, renewTime="2026-11-01T00:00:00.000000Z", leaseDurationSeconds=2_000_000_000)],
    check=_validated,
    must="all services keep running; webhooks apply",
    linger=3.0,
)
stored(
    "lease-year-1",
    ROW,
    "a Lease renewed in the year 1",
    lambda ns: [lease(ns, renewTime="0001-01-01T00:00:00.000000Z", leaseDurationSeconds=1)],
    linger=3.0,
)
stored("lease-negative", ROW, "a Lease of a negative duration", lambda ns: [lease(ns, leaseDurationSeconds=-1)])
stored("lease-without-spec", ROW, "a Lease with an empty spec", lambda ns: [lease(ns) | {"spec": {}}])
stored(
    "lease-far-zone",
    ROW,
    "a Lease whose time has a zone of 23:59",
    lambda ns: [lease(ns, renewTime="9999-12-31T23:59:59.999999-23:59", leaseDurationSeconds=10)],
    linger=3.0,
)
stored(
    "lease-large",
    ROW,
    "a Lease with a holder of 200 KB and a megabyte of annotations",
    lambda ns: [
        lease(ns, holderIdentity="h" * 200_000)
        | {
            "metadata": {
                "name": "dynamo-operator-namespace-scope",
                "namespace": ns,
                "annotations": {"a": "b" * 250_000},
            }
        }
    ],
)


@attack("lease-storm", ROW, "400 changes of the Lease in a row, held and free alternately", slack=2.0, linger=0.5)
async def _storm(world: World) -> None:
    for number in range(400):
        if number % 2:
            await world.tenant.delete(resources.LEASES, world.namespace, "dynamo-operator-namespace-scope")
        else:
            await world.create(lease(world.namespace, renewTime="9999-01-01T00:00:00.000000Z"))


@attack(
    "lease-year-9999-and-graphs",
    ROW,
    "the Lease of the year 9999 is created and deleted while 20 graphs change",
    linger=2.0,
    slack=2.0,
)
async def _with_graphs(world: World) -> None:
    await world.create_all([graph(world.namespace, f"g-{number}") for number in range(20)])
    for _ in range(3):
        await world.create(lease(world.namespace, renewTime="9999-12-31T23:59:59.000000Z", leaseDurationSeconds=9))
        await asyncio.sleep(0.5)
        await world.tenant.delete(resources.LEASES, world.namespace, "dynamo-operator-namespace-scope")


stored(
    "checkpoint-job-lease",
    ROW,
    "a Job that pretends to take a checkpoint, with a Lease of the year 9999 of its name",
    lambda ns: [
        obj(
            resources.LEASES,
            ns,
            "checkpoint-x",
            labels={labels.CHECKPOINT_ID: "x"},
            spec={"holderIdentity": "a", "leaseDurationSeconds": 2**31 - 1, "renewTime": "9999-12-31T23:59:59.000000Z"},
        ),
        obj(
            resources.JOBS,
            ns,
            "checkpoint-x",
            labels={labels.CHECKPOINT_ID: "x"},
            spec={
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}},
                "suspend": True,
            },
        ),
    ],
)
