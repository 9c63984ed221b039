"""Large numbers of allowed operations: keys, failures, changes, deletions. They must not delay the other namespace.

On two cores an API server takes minutes to store 5,000 failing graphs. `World.graphs` is the number that this machine's
API server stores in about ten seconds, at most 400; the order of the queue, which is under test, is the same.
DYNAMO_HOSTILE_GRAPHS=5000 runs all of them.
"""

import asyncio

from dynamo_shared.api import resources
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, Resource

from tests.hostile import texts
from tests.hostile.attack import attack
from tests.hostile.attacks.documents import planned
from tests.hostile.objects import component, config_map, graph, model, obj, request
from tests.hostile.world import QUIET, World
from tests.integration.platform import eventually

ROW = "one queue for all namespaces"
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
#: The storm shares the API server and two cores. Seconds.
SHARED = 4.0


@attack(
    "failing-graphs",
    ROW,
    "hundreds of graphs whose children are refused, again and again",
    linger=1.0,
    slack=SHARED,
    memory=160.0,
)
async def _failing(world: World) -> None:
    quota = obj(QUOTAS, world.namespace, "none", spec={"hard": {"count/dynamocomponentdeployments.nvidia.com": "0"}})
    await world.admin.create_at(QUOTAS, quota)
    try:
        await asyncio.sleep(1)
        await world.create_all([graph(world.namespace, f"failing-{number}") for number in range(world.graphs)])
        await asyncio.sleep(2)
        world.memory["probed"] = await world.probe()
    finally:
        await world.admin.delete(QUOTAS, world.namespace, "none")


@attack(
    "many-keys",
    ROW,
    "hundreds of graphs of six components without replicas: some thousand keys",
    slack=SHARED,
    memory=160.0,
)
async def _keys(world: World) -> None:
    parts = [component(f"Worker{number}", "worker", replicas=0) for number in range(6)]
    await world.create_all([graph(world.namespace, f"many-{number}", *parts) for number in range(world.graphs // 2)])


@attack("changing-graph", ROW, "a graph of 25 components changes 150 times in a row", slack=SHARED)
async def _changing(world: World) -> None:
    parts = [component(f"Worker{number}", "worker", replicas=0) for number in range(25)]
    await world.create(graph(world.namespace, "changing", *parts))
    for number in range(150):
        parts[number % 25]["replicas"] = number % 2
        await world.patch(DYNAMO_GRAPH_DEPLOYMENTS, "changing", {"spec": {"components": parts}})


@attack("deleted-and-created", ROW, "40 graphs deleted and created again, ten times", slack=SHARED, linger=0.5)
async def _recreated(world: World) -> None:
    names = [f"again-{number}" for number in range(40)]
    for _ in range(10):
        await world.create_all([graph(world.namespace, name) for name in names])
        await asyncio.gather(*(world.tenant.delete(DYNAMO_GRAPH_DEPLOYMENTS, world.namespace, name) for name in names))


@attack("scale-storm", ROW, "2,000 scalings of adapters of twenty graphs", slack=SHARED)
async def _scaled(world: World) -> None:
    await world.create_all(
        [
            graph(world.namespace, f"scaled-{number}", component("Frontend", "frontend", scalingAdapter={}))
            for number in range(20)
        ]
    )

    adapters = resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
    items = await eventually(
        lambda: world.admin.list(adapters, world.namespace), "all adapters", where=lambda each: len(each) == 20
    )
    for number in range(50):
        scaled = {"spec": {"replicas": number % 2}}
        await asyncio.gather(*(world.patch(adapters, each["metadata"]["name"], scaled, "scale") for each in items))


@attack(
    "labels-of-children",
    ROW,
    "labels, annotations and replicas of children changed by hand, again and again",
    slack=SHARED,
)
async def _children(world: World) -> None:
    await world.create_all([graph(world.namespace, f"child-{number}") for number in range(10)])

    await eventually(
        lambda: world.admin.list(DEPLOYMENTS, world.namespace), "all Deployments", where=lambda each: len(each) == 10
    )
    for number in range(20):
        for each in await world.admin.list(DEPLOYMENTS, world.namespace):
            patch = {
                "metadata": {
                    "labels": {labels.COMPONENT: f"other-{number}", labels.GRAPH_DEPLOYMENT_NAME: "probe"},
                    "annotations": {"nvidia.com/last-applied-hash": "0" * 64},
                },
                "spec": {"replicas": number % 3},
            }
            await world.patch(DEPLOYMENTS, each["metadata"]["name"], patch)


@attack("children-deleted", ROW, "children deleted as soon as they exist", slack=SHARED)
async def _deleted(world: World) -> None:
    await world.create_all([graph(world.namespace, f"child-{number}") for number in range(10)])
    for _ in range(20):
        for resource in (DEPLOYMENTS, resources.SERVICES, resources.DYNAMO_COMPONENT_DEPLOYMENTS):
            await world.tenant.delete_all(resource, world.namespace)
        await asyncio.sleep(0.1)


@attack("secrets-storm", ROW, "300 changes of pull secrets while graphs use them", slack=SHARED)
async def _secrets(world: World) -> None:
    await world.create_all([graph(world.namespace, f"pulls-{number}") for number in range(5)])
    for number in range(300):
        secret = obj(
            resources.SECRETS,
            world.namespace,
            f"pull-{number % 10}",
            type="kubernetes.io/dockerconfigjson",
            data={".dockerconfigjson": "e30="},
        )
        await world.create(secret)
        if number % 10 == 9:
            await world.tenant.delete_all(resources.SECRETS, world.namespace)


@attack(
    "planner-configs-storm", ROW, "a PlannerConfig that changes 200 times, with 30 graphs that name it", slack=SHARED
)
async def _planners(world: World) -> None:
    first, named = planned(world.namespace, "mode: disagg\n")
    await world.create(first)
    await world.create_all(
        [{**named, "metadata": {**named["metadata"], "name": f"planned-{number}"}} for number in range(30)]
    )
    for number in range(200):
        data = config_map(
            world.namespace, "planned-config", {"planner_config.yaml": f"mode: disagg\nttft: {number + 1}\n"}
        )
        world.note(await world.tenant.apply(data))


async def _quiet_is_planned(world: World) -> None:
    """The condition of a graph in the quiet namespace reports the mistake in its PlannerConfig.

    A valid PlannerConfig is answered only with the first decision, after a fraction of the graph's interval.
    """
    config, planned_ = planned(QUIET, "mode: nonsense\n", "quiet-planned")
    await world.admin.create(config)
    await world.admin.create(planned_)
    try:

        async def answered() -> bool:
            observed = await world.admin.get(DYNAMO_GRAPH_DEPLOYMENTS, QUIET, "quiet-planned") or {}
            conditions = (observed.get("status") or {}).get("conditions") or ()
            return any(each["type"] == "Planning" for each in conditions)

        await eventually(answered, "planning in another namespace answers", 10)
    finally:
        await world.admin.delete(DYNAMO_GRAPH_DEPLOYMENTS, QUIET, "quiet-planned")
        await world.admin.delete(resources.CONFIG_MAPS, QUIET, "quiet-planned-config")


@attack(
    "planner-configs-large",
    ROW,
    "30 graphs with PlannerConfigs of 900 KB each",
    slack=SHARED,
    check=_quiet_is_planned,
    must="planning in another namespace answers within ten seconds",
    memory=128.0,
)
async def _large_configs(world: World) -> None:
    text = texts.plain_map(900_000)
    for number in range(30):
        for each in planned(world.namespace, text, f"planned-{number}"):
            await world.create(each)


@attack("models-storm", ROW, "300 DynamoModels of one base model", slack=SHARED)
async def _models(world: World) -> None:
    adapter = {"modelType": "lora", "source": {"uri": "s3://b/m"}}
    names = [f"m-{number}" for number in range(300)]
    await world.create_all([model(world.namespace, name, modelName=name, **adapter) for name in names])


@attack("requests-storm", ROW, "60 requests at once", slack=SHARED, memory=96.0)
async def _requests(world: World) -> None:
    await world.create_all([request(world.namespace, f"asks-{number}") for number in range(60)])
