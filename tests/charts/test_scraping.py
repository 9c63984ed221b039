"""What Prometheus scrapes, who may scrape it, and the labels of the stored series."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from dynamo_ctl.services import SERVICES
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import ENABLE_METRICS

from tests.charts import helm
from tests.unit.render import building, test_gpu_memory, test_rank_telemetry

SIDECAR = {"name": "sidecar", "image": "img:1"}


def test_secure_metrics_are_scraped_with_a_token_that_the_api_server_authorizes() -> None:
    objects = helm.rendered(helm.PLATFORM / "ci" / "monitoring.yaml")
    roles = {o["metadata"]["name"]: o["rules"] for o in helm.of_kind(objects, "ClusterRole")}
    reader = next(rules for name, rules in roles.items() if name.endswith("metrics-reader"))
    assert reader == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    services = [rules for name, rules in roles.items() if name.rpartition("platform-")[2] in SERVICES]
    assert services
    assert all("tokenreviews" in {each for rule in rules for each in rule["resources"]} for rules in services)
    endpoint = helm.one(objects, "PodMonitor", "watcher")["spec"]["podMetricsEndpoints"][0]
    assert endpoint["scheme"] == "https"
    assert endpoint["authorization"] == {"credentials": {"name": "scraper", "key": "token"}}


def test_scraping_keeps_the_labels_of_the_platforms_metrics() -> None:
    """Their `namespace` is the object's.

    Without honorLabels Prometheus overwrites it with that of the service's pod.
    """
    monitors = {
        each["metadata"]["name"].removeprefix("dynamo-platform-"): each["spec"]["podMetricsEndpoints"]
        for each in helm.of_kind(helm.rendered(helm.PLATFORM / "ci" / "monitoring.yaml"), "PodMonitor")
    }
    assert {name for name, ends in monitors.items() if all(each.get("honorLabels") for each in ends)} == (
        {*SERVICES} & {*monitors}
    )


@pytest.mark.parametrize("port", ["http", "system", "metrics", ""])
@pytest.mark.parametrize("claimed", ["victim", ""])
def test_a_pod_of_a_graph_cannot_claim_another_namespace(port: str, claimed: str) -> None:
    """Planners ignore series of other namespaces; otherwise a tenant's pod could set the replicas of another's
    graph."""
    target = {
        "namespace": "tenant",
        "pod": "front-0",
        "job": "graphs",
        "endpoint": port or "9090",
        "instance": "10.0.0.1:8000",
    }
    own = {"endpoint": "completions", "dynamo_namespace": "victim_chat", "model": "m"}
    lie = {"namespace": claimed, "pod": "other", "exported_namespace": "victim"}
    (endpoint,) = [each for each in graph_monitor()["podMetricsEndpoints"] if each.get("port", "") == port]
    added = {each.get("targetLabel") for each in endpoint["relabelings"]} & {"dynamo_namespace"}
    stored = stored_labels(endpoint, {**target, **dict.fromkeys(added, "tenant-chat")}, {**own, **lie})
    assert (stored["namespace"], stored["pod"]) == ("tenant", "front-0")
    if port in ("http", ""):
        # Dashboards and planners read these labels as the runtime writes them.
        assert own.items() <= stored.items()
        plain = stored_labels(endpoint, {**target, "dynamo_namespace": "tenant-chat"}, {"model": "m"})
        assert plain == {**target, "dynamo_namespace": "tenant-chat", "model": "m"}


def graph_monitor() -> dict[str, Any]:
    """Spec of the PodMonitor for pods of graphs."""
    return dict(helm.one(helm.rendered(helm.PLATFORM / "ci" / "monitoring.yaml"), "PodMonitor", "graphs")["spec"])


def stored_labels(endpoint: dict[str, Any], target: dict[str, str], scraped: dict[str, str]) -> dict[str, str]:
    """Labels that Prometheus stores with a series (`mutateSampleLabels` of scrape.go, then
    `metric_relabel_configs`)."""
    if endpoint.get("honorLabels"):
        result = {**target, **scraped}
    else:
        result = {name: value for name, value in scraped.items() if name not in target} | target
        for name in sorted(scraped.keys() & target.keys()):
            exported = f"exported_{name}"
            while exported in result:
                exported = f"exported_{exported}"
            result |= {exported: scraped[name]} if scraped[name] else {}
    result = {name: value for name, value in result.items() if value}
    for rule in endpoint.get("metricRelabelings", ()):
        if rule.get("action") == "labeldrop":
            result = {name: value for name, value in result.items() if not re.fullmatch(rule["regex"], name)}
        elif match := re.fullmatch(rule["regex"], result.get(rule["sourceLabels"][0], "")):
            result[rule["targetLabel"]] = match[1]
    return result


def test_relabelling_rules_of_the_values_follow_those_of_the_chart() -> None:
    """If they came first, they could use neither the chart's labels nor the metric names that it restores."""
    more = {"relabelings": [{"targetLabel": "tier"}], "metricRelabelings": [{"action": "drop", "regex": "python_.*"}]}
    given = {"podMonitor": {"enabled": True, "endpoint": more}, "graphPodMonitor": {"enabled": True, "endpoint": more}}
    monitors = helm.of_kind(helm.objects("--set-json", f"metrics={json.dumps(given)}"), "PodMonitor")
    endpoints = [each for monitor in monitors for each in monitor["spec"]["podMetricsEndpoints"]]
    assert len(endpoints) > 10
    for field, rules in more.items():
        assert all(each[field][-1:] == rules for each in endpoints)
        assert any(len(each[field]) > 1 for each in endpoints)


def test_the_metrics_path_of_frontends_is_configurable() -> None:
    path = "metrics.graphPodMonitor.frontendPath=/internal/metrics"
    objects = helm.objects("--values", helm.PLATFORM / "ci" / "monitoring.yaml", "--set", path)
    endpoints = helm.one(objects, "PodMonitor", "graphs")["spec"]["podMetricsEndpoints"]
    paths = {each.get("port", ""): each["path"] for each in endpoints if "path" in each}
    assert paths == {"http": "/internal/metrics"}


def test_pods_of_graphs_are_scraped_in_the_namespaces_of_the_release() -> None:
    served = {"monitoring": {"any": True}, "namespaces": {"matchNames": ["team-a", "team-b"]}}
    for values, selector in served.items():
        monitor = helm.one(helm.rendered(helm.PLATFORM / "ci" / f"{values}.yaml"), "PodMonitor", "graphs")
        assert monitor["spec"]["namespaceSelector"] == selector, values


@pytest.mark.parametrize(
    ("component", "scraped"),
    [
        (building.component("Frontend", "frontend"), {8000}),
        (building.component("Worker", "worker"), {9090, 19090}),
        (building.component("Prefill", "prefill"), {9090, 19090}),
        (
            building.component("Worker", "worker", frontendSidecar=SIDECAR["name"], sidecars=[SIDECAR]),
            {8000, 9090, 19090},
        ),
        (building.component("Planner", "planner"), {9085}),
        (building.component("Epp", "epp", eppConfig={"configMapRef": {"name": "c", "key": "k"}}), {9090}),
        (building.component("Processor", None), set()),
        (building.component("Frontend", "frontend", annotations={ENABLE_METRICS: "false"}), set()),
    ],
    ids=["frontend", "worker", "prefill", "worker with sidecar", "planner", "epp", "no type", "switched off"],
)
def test_scraped_ports_of_a_graphs_pod(component: dict[str, Any], scraped: set[int]) -> None:
    config = replace(building.CONFIG, inference_pools=True)
    template = building.deployment(component, config)["spec"]["template"]
    assert scrapes(template["metadata"]["labels"], template["spec"]) == scraped


def test_routers_are_scraped_without_declaring_a_port() -> None:
    assert scrapes({labels.METRICS_ENABLED: "true", labels.COMPONENT_TYPE: "default"}, {"containers": []}) == {9090}


def test_each_engine_of_a_failover_group_is_scraped() -> None:
    component = test_gpu_memory.worker(test_gpu_memory.WITHIN_FAILOVER)
    assert scrapes(
        {labels.METRICS_ENABLED: "true", labels.COMPONENT_TYPE: "worker"}, test_gpu_memory.pod(component)
    ) == {9090, 9091}


def test_each_rank_of_sglang_is_scraped() -> None:
    component = test_rank_telemetry.engine(test_rank_telemetry.ON, gpus=test_rank_telemetry.MOST)
    rendered = building.pod(component, backendFramework="sglang")
    assert scrapes({labels.METRICS_ENABLED: "true", labels.COMPONENT_TYPE: "worker"}, rendered) == {
        9090,
        *test_rank_telemetry.row(test_rank_telemetry.MOST).values(),
    }


def scrapes(object_labels: dict[str, str], pod: dict[str, Any]) -> set[int]:
    """Ports of a pod that Prometheus scrapes, by the rules of the Prometheus operator for PodMonitors."""
    monitor = graph_monitor()
    if not monitor["selector"]["matchLabels"].items() <= object_labels.items():
        return set()
    known = {
        f"__meta_kubernetes_pod_label_{re.sub(r'[^a-zA-Z0-9_]', '_', key)}": object_labels[key] for key in object_labels
    }
    declared = [port for container in pod["containers"] for port in container.get("ports", ())]
    results = set()
    for endpoint in monitor["podMetricsEndpoints"]:
        rules = endpoint["relabelings"]
        kept = [rule for rule in rules if rule.get("action") == "keep"]
        if not all(re.fullmatch(rule["regex"], known.get(rule["sourceLabels"][0], "")) for rule in kept):
            continue
        if "port" in endpoint:
            results |= {port["containerPort"] for port in declared if port["name"] == endpoint["port"]}
        else:
            rewritten = [rule for rule in rules if rule.get("targetLabel") == "__address__"]
            for given, written in (("10.0.0.1", "10.0.0.1"), ("fd00::1", "[fd00::1]")):
                (match,) = [(rule, each) for rule in rewritten if (each := re.fullmatch(rule["regex"], given))]
                host, _, port = match[1].expand(match[0]["replacement"].replace("${1}", r"\1")).rpartition(":")
                assert host == written
                results.add(int(port))
    return results
