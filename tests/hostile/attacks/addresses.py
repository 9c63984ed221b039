"""Addresses and namespaces in a PlannerConfig, and pods that pretend to be exporters."""

import json
from typing import Any

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, PODS

from tests.hostile.attack import Attack, add, attack
from tests.hostile.attacks.documents import planned
from tests.hostile.objects import obj, request
from tests.hostile.world import World
from tests.integration.platform import eventually

ROW = "addresses in PlannerConfig"
WALLS = "namespace of PlannerConfig"
EXPORTERS = "pods that pretend to be DCGM"
INTERVALS = {"throughput_adjustment_interval_seconds": 1, "load_adjustment_interval_seconds": 1}


def _config(**fields: Any) -> str:
    return json.dumps({"mode": "disagg", "policy": "reference", "load_predictor": "constant", **INTERVALS, **fields})


async def _nothing_came(world: World) -> None:
    assert not world.farm.heard, f"the platform asked an address that a tenant named: {world.farm.heard[:3]}"
    status = json.dumps(await world.status_of(DYNAMO_GRAPH_DEPLOYMENTS, "planned"))
    for word in ("server_id", 'apiVersion\\"', "hunter2", "gitVersion"):
        assert word not in status, f"an answer stands in the status: {status[:400]}"


def _address(name: str, does: str, url: str, **fields: Any) -> None:
    async def run(world: World) -> None:
        nats = str(world.stage.nats.monitoring_port)
        places = {"farm": str(world.farm.port), "api": world.admin.server, "nats": nats, "etcd": world.stage.etcd.url}
        world.farm.reset("secret-error")
        text = _config(metric_pulling_prometheus_endpoint=url.format(**places), **fields)
        for each in planned(world.namespace, text):
            await world.create(each)

    add(Attack(f"prometheus-{name}", ROW, does, run, _nothing_came, "no request arrives, no answer is repeated", 4.0))


_address("loopback", "a Prometheus on loopback", "http://127.0.0.1:{farm}")
_address("localhost", "a Prometheus on localhost", "http://localhost:{farm}")
_address("loopback-decimal", "loopback as one number", "http://2130706433:{farm}")
_address("loopback-hex", "loopback in hexadecimal", "http://0x7f.1:{farm}")
_address("loopback-mapped", "loopback as IPv6", "http://[::ffff:127.0.0.1]:{farm}")
_address("unspecified", "the address of every interface", "http://0.0.0.0:{farm}")
_address("loopback-user", "loopback behind a user name", "http://prometheus.monitoring@127.0.0.1:{farm}")
_address("api-server", "the API server as Prometheus", "{api}/version", metric_pulling_prometheus_ssl_verify=False)
_address("nats-monitoring", "NATS' monitoring as Prometheus", "http://127.0.0.1:{nats}/varz?")
_address("etcd", "etcd as Prometheus", "{etcd}/version#")
_address("metadata", "the clouds' metadata service", "http://169.254.169.254/latest/meta-data")
_address("metadata-google", "Google's metadata service by name", "http://metadata.google.internal/computeMetadata/v1")
_address(
    "token-file",
    "a token file of the planner's own pod",
    "http://10.0.0.1:9090",
    metric_pulling_prometheus_token_file="/var/run/secrets/kubernetes.io/serviceaccount/token",
)
_address(
    "query-parameters",
    "query parameters that replace the query",
    "http://10.0.0.1",
    metric_pulling_prometheus_extra_query_params={"query": "up", "namespace": "quiet", "x": "y" * 10_000},
)


async def _own_namespace(world: World) -> None:
    asked = [line for line in world.prometheus.heard if "quiet" in line]
    assert not asked, f"the platform's Prometheus was asked about another namespace: {asked[0][:300]}"


def _wall(name: str, namespace: str) -> None:
    @attack(
        f"planner-namespace-{name}",
        WALLS,
        f"a PlannerConfig that names {name} as its Dynamo namespace",
        check=_own_namespace,
        must="the platform's Prometheus is queried only for the graph's own namespace",
        linger=4.0,
    )
    async def run(world: World) -> None:
        world.prometheus.reset()
        for each in planned(world.namespace, _config(namespace=namespace)):
            await world.create(each)


_wall("another", "quiet-probe")
_wall("a-pattern", '.*"} or {dynamo_namespace=~"quiet.*')
_wall("a-label", 'x",k8s_namespace="quiet')


async def _not_asked(world: World) -> None:
    asked = [line for line in world.farm.heard if "dcgm" in line]
    assert not asked, f"a pod of the tenant was asked as an exporter: {asked[:2]}"


@attack(
    "dcgm-pretenders",
    EXPORTERS,
    "60 pods with the exporters' labels, and requests that do not name the GPUs",
    check=_not_asked,
    must="only exporters in the namespace of the settings are queried",
    linger=4.0,
    slack=2.0,
)
async def _exporters(world: World) -> None:
    world.farm.reset("hang")
    await world.create_all(
        [
            obj(
                PODS,
                world.namespace,
                f"exporter-{number}",
                labels={
                    "app": ("nvidia-dcgm-exporter", "dcgm-exporter")[number % 2],
                    "app.kubernetes.io/name": "dcgm-exporter",
                },
                spec={"containers": [{"name": "main", "image": "x"}]},
            )
            for number in range(60)
        ]
    )

    async def runs() -> bool:
        return any(pod.get("status", {}).get("podIP") for pod in await world.admin.list(PODS, world.namespace))

    await eventually(runs, "the pods have addresses")
    await world.create(request(world.namespace, "asks", spec={"hardware": {}}))
