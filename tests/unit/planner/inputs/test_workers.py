"""Workers, start-up times and capabilities from Kubernetes objects."""

import pytest
from dynamo_planner.core.observation import EngineCapabilities, Missing, Pool, PoolCounts
from dynamo_planner.inputs import InputError, InputUnavailable
from dynamo_planner.inputs.engines import engines_of, is_of_pool
from dynamo_planner.inputs.startup import StartupTimes, seconds_to_ready
from dynamo_planner.inputs.workers import find_pools, gpus_of_worker, pool_counts
from dynamo_shared.api import gpus
from dynamo_shared.api.contracts.planner import Mode
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import ModelCard, WorkerData

P, D = Pool.PREFILL, Pool.DECODE


def component(name, kind=None, **fields):
    return {"name": name, **({"type": kind} if kind else {}), **fields}


PREFILL, DECODE = component("a", "prefill"), component("b", "decode")
TYPE = "nvidia.com/dynamo-component-type"


def engine(name, pods):
    return component(name, "worker", **pods)


def graph(*components, status=None):
    return {"metadata": {"name": "g"}, "spec": {"components": list(components)}, "status": status or {}}


def labelled(role, name="nvidia.com/dynamo-sub-component-type"):
    return {"podTemplate": {"metadata": {"labels": {name: role}}}}


def spread(role):
    """Workers over several nodes whose roles have their own pod templates."""
    template = labelled(role)["podTemplate"]
    roles = [{"name": "worker", "podTemplate": {}}, {"name": "leader", "podTemplate": template}]
    return {"multinode": {"nodeCount": 2}, "roles": roles}


def pod(name, *, node="n1", scheduled="10:00:00", ready=None, containers=None, reason=None, status=None, **metadata):
    conditions = []
    if reason:
        conditions.append({"type": "PodScheduled", "status": "False", "reason": reason})
    elif scheduled:
        at = f"2026-01-01T{scheduled}Z"
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": at})
    for kind, at in (("Ready", ready), ("ContainersReady", containers)):
        if at:
            conditions.append({"type": kind, "status": "True", "lastTransitionTime": f"2026-01-01T{at}Z"})
    spec = {"nodeName": node} if node and not reason else {}
    observed = {"phase": "Running", "conditions": conditions, **(status or {})}
    return {"metadata": {"name": name, "uid": name, **metadata}, "spec": spec, "status": observed}


class TestPools:
    @pytest.mark.parametrize(
        ("mode", "components", "observed"),
        [
            (Mode.DISAGG, [PREFILL, DECODE, component("f", "frontend")], {P: "a", D: "b"}),
            (Mode.PREFILL, [PREFILL, DECODE], {P: "a"}),
            (Mode.AGG, [component("w", "worker"), component("f", "frontend")], {D: "w"}),
            (Mode.AGG, [component("w", "decode")], {D: "w"}),
            (Mode.DISAGG, [engine("x", labelled("prefill")), engine("y", labelled("decode"))], {P: "x", D: "y"}),
            (Mode.AGG, [component("d", "decode"), component("w", "worker")], {D: "w"}),
            (
                Mode.DISAGG,
                [engine("x", labelled("prefill", TYPE)), component("y", **labelled("decode", TYPE))],
                {P: "x", D: "y"},
            ),
            (Mode.DISAGG, [engine("x", spread("prefill")), engine("y", spread("decode"))], {P: "x", D: "y"}),
            (Mode.AGG, [engine("x", labelled("worker", TYPE))], {D: "x"}),
            (
                Mode.DISAGG,
                [component("VllmPrefillWorker"), component("VllmDecodeWorker", "worker")],
                {P: "VllmPrefillWorker", D: "VllmDecodeWorker"},
            ),
        ],
    )
    def test_are_matched_by_type_then_role_then_name(self, mode, components, observed):
        assert {pool: each["name"] for pool, each in find_pools(graph(*components), mode).items()} == observed

    @pytest.mark.parametrize(
        ("components", "problem"),
        [
            ([DECODE], "type prefill, but the graph has none; its components: b \\(decode\\)"),
            ([PREFILL, component("c", "prefill"), DECODE], "more than one"),
            ([], "its components: none"),
        ],
    )
    def test_that_cannot_be_distinguished_are_rejected(self, components, problem):
        with pytest.raises(InputError, match=problem):
            find_pools(graph(*components), Mode.DISAGG)


class TestCounts:
    def counts(self, reported, pods=(), **fields):
        worker = component("w", "worker", **fields)
        return pool_counts(graph(worker, status={"components": {"w": reported}}), worker, pods)

    def test_available_workers_go_before_ready_ones(self):
        assert self.counts({"availableReplicas": 2, "readyReplicas": 3}, replicas=4) == PoolCounts(ready=2, expected=4)
        assert self.counts({"readyReplicas": 3}, replicas=3) == PoolCounts(ready=3, expected=3)

    def test_one_replica_is_the_default_and_zero_means_no_replica(self):
        assert self.counts({"readyReplicas": 1}).expected == 1
        assert self.counts({"readyReplicas": 0}, replicas=0) == PoolCounts(ready=0, expected=0)

    def test_without_a_status_counts_are_unknown(self):
        outcome = self.counts({"replicas": 1})
        assert isinstance(outcome, InputUnavailable)
        assert outcome.why is Missing.NO_WORKERS

    def test_pending_and_starting_pods_are_distinguished(self):
        pods = [
            pod("serves", ready="10:01:00"),
            pod("starts"),
            pod("waits", reason="Unschedulable"),
            pod("gated", reason="SchedulingGated"),
            pod("leaves", deletionTimestamp="2026-01-01T10:00:00Z"),
        ]
        pods.append({**pod("over"), "status": {"phase": "Failed"}})
        counts = self.counts({"readyReplicas": 1}, pods, replicas=4)
        assert (counts.pending, counts.starting) == (1, 1)

    def test_multi_node_replicas_are_counted_as_a_whole(self):
        pods = [pod(str(index), reason="Unschedulable") for index in range(3)] + [
            pod(f"s{index}") for index in range(4)
        ]
        counts = self.counts({"readyReplicas": 0}, pods, replicas=4, multinode={})
        assert (counts.pending, counts.starting) == (2, 2)

    @pytest.mark.parametrize(
        ("of", "index"),
        [
            ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
            ("grove.io/podcliquescalinggroup", "grove.io/podcliquescalinggroup-replica-index"),
        ],
        ids=["LeaderWorkerSet", "Grove"],
    )
    def test_each_replica_that_waits_for_one_of_its_nodes_is_pending(self, of, index):
        """Two replicas of two pods, each with one node, counted as one pending and one starting replica."""

        def of_replica(number, **fields):
            return pod(f"{number}-{fields}", labels={of: "g-w", index: str(number)}, **fields)

        pods = [of_replica(number, **fields) for number in range(2) for fields in ({"reason": "Unschedulable"}, {})]
        pods += [of_replica(2, node="n1"), of_replica(2, node="n2")]
        counts = self.counts({"readyReplicas": 0}, pods, replicas=3, multinode={})
        assert (counts.pending, counts.starting) == (2, 1)

    def test_gpus(self):
        limits = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
        worker = component("w", podTemplate={"spec": {"containers": [limits]}}, multinode={"nodeCount": 2})
        assert gpus_of_worker("w", gpus.of_replica(worker)) == 8
        assert gpus_of_worker("w", gpus.of_replica(component("w"))) is None


class TestStartup:
    @pytest.mark.parametrize(
        ("each", "seconds"),
        [
            (pod("a", ready="10:02:30"), 150.0),
            (pod("starts"), None),
            (pod("waits", reason="Unschedulable"), None),
            (pod("clock", ready="09:00:00"), None),
            (pod("of a node that was away", ready="14:30:00"), None),
            (pod("of one that was away, too", ready="11:00:00", containers="10:02:30"), 150.0),
            (pod("starts", containers="10:02:30"), None),
            (pod("again", ready="10:02:30", status={"containerStatuses": [{"restartCount": 1}]}), None),
            (pod("again", ready="10:02:30", status={"initContainerStatuses": [{"restartCount": 1}]}), None),
            ({"metadata": {"name": "new"}}, None),
            (pod("odd", scheduled="never", ready="10:00:00"), None),
        ],
    )
    def test_of_one_pod(self, each, seconds):
        assert seconds_to_ready(each) == seconds

    def test_is_the_median_of_the_observed_times(self):
        times = StartupTimes()
        assert times.seconds is None
        times.learn([pod("a", ready="10:01:00"), pod("b", ready="10:02:00"), pod("c", ready="10:59:00")])
        assert times.seconds == 120

    @pytest.mark.parametrize(
        ("names", "later"), [(["a"], ["a"]), ([f"p{index}" for index in range(300)],) * 2, (["a"], [])]
    )
    def test_pods_that_became_ready_again_do_not_count_and_deleted_pods_keep_their_measurement(self, names, later):
        times = StartupTimes()
        times.learn([pod(name, ready="10:01:00") for name in names])
        times.learn([pod(name, ready="11:00:00") for name in later])
        assert times.seconds == 60

    def test_new_starts_replace_old_ones_within_bounds(self):
        times = StartupTimes()
        for index in range(1000):
            times.learn([pod(f"p{index}", ready="10:05:00" if index > 900 else "10:00:10")])
        assert times.seconds == 300
        assert len(times._counted) <= 256


def worker(name="a", role="decode", graph="g", component="Decode", namespace="ns-g", *, of="ns", **card):
    reported = {
        "name": "Qwen",
        "kv_cache_block_size": 16,
        "total_kv_blocks": 512,
        "context_length": 4096,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        **card,
    }
    return WorkerData(
        name=name,
        role=role,
        component="backend",
        namespace=of,
        dynamo_namespace=namespace,
        graph_deployment=graph,
        graph_component=component,
        models=[ModelCard(**reported)],
    )


class TestEngines:
    def test_capabilities_are_the_minimum_of_all_engines(self):
        assert engines_of([worker(), worker("b", total_kv_blocks=256)], 2) == EngineCapabilities(
            num_gpu=2, max_num_batched_tokens=8192, max_num_seqs=256, context_length=4096, max_kv_tokens=4096
        )

    def test_missing_card_fields_are_unknown_and_adapters_do_not_count_as_models(self):
        assert engines_of([], None) == EngineCapabilities()
        reported = engines_of([worker(total_kv_blocks=0), worker("b", lora=True, max_num_seqs=1)], None)
        assert (reported.max_kv_tokens, reported.max_num_seqs) == (None, 256)

    @pytest.mark.parametrize(
        ("observed", "mode", "pool", "counts"),
        [
            (worker(), Mode.DISAGG, Pool.DECODE, True),
            (worker(component="Prefill"), Mode.DISAGG, Pool.DECODE, False),
            (worker(graph="other"), Mode.DISAGG, Pool.DECODE, False),
            # A graph of the same name in another namespace, and one that claims the Dynamo namespace.
            (worker(of="other"), Mode.DISAGG, Pool.DECODE, False),
            (worker(of=""), Mode.DISAGG, Pool.DECODE, False),
            (worker(graph="", component="", of="other"), Mode.DISAGG, Pool.DECODE, False),
            (worker(graph="", component="", of=""), Mode.DISAGG, Pool.DECODE, True),
            # Discovered through etcd: without pod and graph.
            (worker(graph="", component=""), Mode.DISAGG, Pool.DECODE, True),
            (worker(graph="", component="", role="prefill"), Mode.DISAGG, Pool.DECODE, False),
            (worker(graph="", component="", namespace="ns-other"), Mode.DISAGG, Pool.DECODE, False),
            (worker(graph="", component="", role="aggregated"), Mode.AGG, Pool.DECODE, True),
            (worker(graph="", component="", role="aggregated"), Mode.DISAGG, Pool.DECODE, False),
            (worker(graph="", component="", role=""), Mode.DISAGG, Pool.DECODE, True),
        ],
    )
    def test_only_engines_of_the_pool_count(self, observed, mode, pool, counts):
        result = is_of_pool(
            observed, graph=ObjectKey("ns", "g"), component="Decode", pool=pool, mode=mode, namespaces=("ns-g",)
        )
        assert result is counts
