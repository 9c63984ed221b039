"""When a component may be scaled, and by how many replicas."""

from collections.abc import Callable
from typing import Any

import pytest
from dynamo_scaler.budgets.pools import DesiredPool, PoolKey
from dynamo_scaler.safety import holds
from dynamo_scaler.safety import policy as policy_module
from dynamo_scaler.safety.history import ReplicaRequest, RequestHistory, stabilized
from dynamo_scaler.safety.holds import Hold, Shapes
from dynamo_scaler.safety.policy import InvalidPolicyError, limits_of
from dynamo_scaler.safety.verdict import Situation, judge
from dynamo_shared.api.registry.annotations import SCALING_POLICY
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime.settings.scaler import Direction, ScalingLimits

KEY = PoolKey("team", "a", "Decode")
NOW = 10_000.0


def pool(current: int, least: int = 1) -> DesiredPool:
    return DesiredPool(KEY, "decode", current, 1, least=least)


def outcome(current: int, requested: int, situation: Situation, least: int = 1) -> tuple[int, int, str]:
    verdict = judge(pool(current, least), requested, situation, NOW)
    return verdict.allowed, verdict.desired, verdict.reason


@pytest.mark.parametrize(
    ("current", "requested", "limits", "expected"),
    [
        (3, 5, {}, (5, 5, "")),
        (3, 3, {}, (3, 3, "")),
        (3, 0, {}, (1, 1, "BelowMinimum")),
        (3, 0, {"min": 0}, (0, 0, "")),
        (1, 0, {}, (1, 1, "BelowMinimum")),
        (0, 0, {}, (0, 0, "")),
        (0, 1, {"min": 2}, (2, 2, "")),
        (2, 1, {"min": 4}, (2, 2, "BelowMinimum")),
        (3, 9, {"max": 5}, (5, 5, "AboveMaximum")),
        (7, 9, {"max": 5}, (7, 7, "AboveMaximum")),
        (7, 6, {"max": 5}, (6, 6, "")),
    ],
)
def test_a_component_stays_within_its_bounds(
    current: int, requested: int, limits: dict[str, Any], expected: tuple[int, int, str]
) -> None:
    assert outcome(current, requested, Situation(ScalingLimits.model_validate(limits))) == expected


def test_a_step_limit_splits_a_change_and_holds_the_rest() -> None:
    limits = ScalingLimits(up=Direction(step=2, cooldown=30), down=Direction(step=1, cooldown=30))
    assert outcome(2, 10, Situation(limits)) == (4, 10, "StepLimit")
    assert outcome(5, 1, Situation(limits)) == (4, 1, "StepLimit")
    assert judge(pool(2), 10, Situation(limits), NOW).held
    assert outcome(2, 4, Situation(limits)) == (4, 4, "")


@pytest.mark.parametrize(
    ("current", "requested", "limits", "expected"),
    [
        (4, 0, {}, (3, 3, "BelowMinimum")),
        (0, 5, {"max": 2}, (0, 0, "AboveMaximum")),
        (0, 5, {"min": 0, "up": {"step": 1, "cooldown": 30}}, (3, 5, "StepLimit")),
        (4, 0, {"min": 0, "down": {"step": 2, "cooldown": 30}}, (3, 0, "StepLimit")),
        (3, 0, {"min": 0, "down": {"step": 1, "cooldown": 30}}, (0, 0, "")),
        (5, 0, {"min": 0, "down": {"step": 1, "cooldown": 30}}, (4, 0, "StepLimit")),
    ],
)
def test_replicas_that_start_together_scale_together(
    current: int, requested: int, limits: dict[str, Any], expected: tuple[int, int, str]
) -> None:
    assert outcome(current, requested, Situation(ScalingLimits.model_validate(limits)), least=3) == expected


@pytest.mark.parametrize(
    ("ago", "requested", "allowed"), [(59.0, 2, 3), (60.0, 2, 2), (29.0, 5, 3), (30.0, 5, 5), (1.0, 3, 3)]
)
def test_each_direction_has_its_own_cooldown(ago: float, requested: int, allowed: int) -> None:
    limits = ScalingLimits(up=Direction(cooldown=30), down=Direction(cooldown=60))
    situation = Situation(limits, scaled_at=NOW - ago)
    verdict = judge(pool(3), requested, situation, NOW)
    assert verdict.allowed == allowed
    assert verdict.reason == ("" if allowed == requested else "Cooldown")


@pytest.mark.parametrize(("ahead", "allowed"), [(10.0, 3), (60.0, 3), (61.0, 2), (1e9, 2)])
def test_a_clock_that_was_set_back_does_not_block_scaling(ahead: float, allowed: int) -> None:
    situation = Situation(ScalingLimits(down=Direction(cooldown=60)), scaled_at=NOW + ahead)
    assert judge(pool(3), 2, situation, NOW).allowed == allowed


def test_a_component_that_was_never_scaled_has_no_cooldown() -> None:
    assert outcome(3, 2, Situation(ScalingLimits(down=Direction(cooldown=60)))) == (2, 2, "")


def test_the_smallest_change_requested_within_the_window_counts() -> None:
    limits = ScalingLimits(up=Direction(stabilization=60), down=Direction(stabilization=300))
    lately = (
        ReplicaRequest(NOW - 400, 9),
        ReplicaRequest(NOW - 299, 4),
        ReplicaRequest(NOW - 50, 7),
        ReplicaRequest(NOW, 2),
    )
    assert outcome(5, 2, Situation(limits, asked=lately)) == (5, 2, "Stabilizing")
    assert outcome(8, 2, Situation(limits, asked=lately)) == (7, 2, "Stabilizing")
    assert outcome(8, 2, Situation(limits, asked=(ReplicaRequest(NOW - 301, 9), ReplicaRequest(NOW, 2)))) == (2, 2, "")
    assert outcome(3, 9, Situation(limits, asked=(ReplicaRequest(NOW - 59, 5), ReplicaRequest(NOW, 9)))) == (
        5,
        9,
        "Stabilizing",
    )
    assert outcome(3, 9, Situation(limits, asked=(ReplicaRequest(NOW - 61, 5), ReplicaRequest(NOW, 9)))) == (9, 9, "")


def test_a_window_of_a_day_keeps_the_requests_of_the_morning() -> None:
    history, limits = RequestHistory(), ScalingLimits(down=Direction(stabilization=86_400))
    for minute in range(1400):
        history.note(KEY, 9 if not minute else 2 + minute % 3, 9, NOW + 60 * minute)
    asked = history.of(KEY, 9, NOW + 60 * 1400)
    assert (stabilized(2, 9, asked, limits, NOW + 60 * 1400), len(asked)) == (9, 4)


def stabilizing(history: RequestHistory, current: int, desired: int, now: float) -> int:
    """The replicas that a window of five minutes in both directions allows."""
    window = Direction(stabilization=300)
    asked = history.of(KEY, current, now)
    return judge(pool(current), desired, Situation(ScalingLimits(up=window, down=window), asked=asked), now).allowed


def test_the_first_request_starts_its_window_with_the_current_replicas() -> None:
    history = RequestHistory()
    history.note(KEY, 2, 5, NOW)
    assert stabilizing(history, 5, 2, NOW) == 5
    assert stabilizing(history, 5, 2, NOW + 299) == 5
    assert stabilizing(history, 5, 2, NOW + 300) == 2
    history.forget(KEY.graph_key)
    assert stabilizing(history, 5, 2, NOW + 300) == 5


@pytest.mark.parametrize("other", [2, 9])
def test_a_requested_number_counts_until_another_one_is_requested(other: int) -> None:
    """A planner that needs no change sends nothing. Its first other number starts a window, as any does."""
    history = RequestHistory()
    history.note(KEY, 5, 5, NOW)
    assert stabilizing(history, 5, other, NOW + 3600) == 5
    history.note(KEY, other, 5, NOW + 3600)
    assert stabilizing(history, 5, other, NOW + 3600 + 299) == 5
    assert stabilizing(history, 5, other, NOW + 3600 + 300) == other


def test_a_window_ends_even_if_the_wall_clock_was_set_back():
    history = RequestHistory()
    history.note(KEY, 2, 5, NOW)
    earlier = NOW - 86400
    history.note(KEY, 2, 5, earlier)
    assert stabilizing(history, 5, 2, earlier + 299) == 5
    assert stabilizing(history, 5, 2, earlier + 300) == 2


def test_roll_outs_hold_both_directions_and_a_lack_of_capacity_holds_growth() -> None:
    rollout = Situation(ScalingLimits(), rollout=Hold("RolloutInProgress", "so"))
    assert outcome(3, 4, rollout) == (3, 4, "RolloutInProgress")
    assert outcome(3, 2, rollout) == (3, 2, "RolloutInProgress")
    pending = Situation(ScalingLimits(), growth=Hold("CapacityPending", "so"))
    assert outcome(3, 4, pending) == (3, 4, "CapacityPending")
    assert outcome(3, 2, pending) == (2, 2, "")


def graph(generation: int = 2, observed: int = 2, replicas: int = 1, image: str = "a", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "namespace": "team", "uid": "u", "generation": generation, "annotations": {}},
        "spec": {"components": [{"name": "Decode", "replicas": replicas, "image": image}]},
        "status": {"observedGeneration": observed, "state": "successful", **status},
    }


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"rollingUpdate": {"phase": "InProgress"}}, "new worker pods are replacing the old ones"),
        ({"rollingUpdate": {"phase": "Pending"}}, "new worker pods are replacing the old ones"),
        ({"restart": {"phase": "Restarting", "inProgress": ["Decode"]}}, "a restart is in progress: Decode"),
        ({"components": {"Decode": {"replicas": 3, "updatedReplicas": 1}}}, "2 of its 3 pods still have the former"),
        ({"rollingUpdate": {"phase": "Completed"}, "restart": {"phase": "Completed"}}, ""),
        ({"components": {"Decode": {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 1}}}, ""),
        ({"components": {"Prefill": {"replicas": 3, "updatedReplicas": 1}}}, ""),
    ],
)
def test_a_graph_that_is_not_fully_rolled_out_is_a_roll_out(status: dict[str, Any], words: str) -> None:
    result = holds.rollout(graph(**status), "Decode", observed=True)
    assert (result is not None) == bool(words)
    if result is not None:
        assert result.reason == "RolloutInProgress"
        assert words in result.message


def test_an_unobserved_spec_change_is_a_roll_out_and_changed_replicas_are_not() -> None:
    shapes = Shapes()
    assert not shapes.is_observed(graph(generation=3, observed=2))
    shapes.note(graph())
    assert shapes.is_observed(graph())
    assert shapes.is_observed(graph(generation=3, observed=2, replicas=5))
    assert not shapes.is_observed(graph(generation=3, observed=2, image="b"))
    shapes.note(graph(generation=3, observed=3, image="b"))
    assert shapes.is_observed(graph(generation=4, observed=3, image="b", replicas=2))
    shapes.forget(graph())
    assert not shapes.is_observed(graph(generation=4, observed=3, image="b", replicas=2))
    assert holds.rollout(graph(generation=3, observed=2), "Decode", observed=False) is not None


def test_a_command_computes_the_shape_of_a_graph_and_reads_its_policies_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each of 25 components, a graph of a megabyte and its policies took seconds."""
    computed: list[str] = []

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            computed.append(name)
            return function(*given)

        return call

    monkeypatch.setattr(holds, "shape", recorded("shape", holds.shape))
    monkeypatch.setattr(policy_module, "_policies", recorded("policy", policy_module._policies))
    shapes, asked = Shapes(), policy("{Decode: {max: 77}}")
    shapes.note(asked)
    asked["metadata"] |= {"generation": 3, "resourceVersion": "7"}
    computed.clear()
    for _ in range(25):
        assert shapes.is_observed(asked)
        assert limits_of(asked, "Decode", DEFAULTS).max == 77
    assert computed == ["shape", "policy"]
    asked["metadata"]["resourceVersion"] = "8"
    assert shapes.is_observed(asked)
    assert computed == ["shape", "policy", "shape"]


def test_unschedulable_pods_hold_growth_and_are_named() -> None:
    waiting = [ObjectKey("team", f"p{n}") for n in reversed(range(5))]
    result = holds.capacity(waiting, lambda pod: f"no GPU for {pod.name}")
    assert result == Hold("CapacityPending", "5 pods wait for a node (p0, p1, p2 and 2 more): no GPU for p0")
    assert holds.capacity([], lambda _: "") is None


def test_a_failed_graph_may_only_shrink() -> None:
    broken = graph(state="failed", conditions=[{"type": "Ready", "status": "False", "message": "no such image"}])
    result = holds.failed(broken)
    assert result == Hold("GraphFailed", "the graph has failed: no such image")
    assert holds.failed(graph()) is None


def policy(text: str) -> dict[str, Any]:
    obj = graph()
    obj["metadata"]["annotations"] = {SCALING_POLICY: text}
    return obj


DEFAULTS = ScalingLimits(down=Direction(cooldown=60))


def test_the_annotation_overrides_the_settings_and_a_name_overrides_the_wildcard() -> None:
    assert limits_of(graph(), "Decode", DEFAULTS) == DEFAULTS
    said = policy("{'*': {min: 2, down: {cooldown: 5m}}, Decode: {max: 8, down: {stabilization: 30s}}}")
    limits = limits_of(said, "Decode", DEFAULTS)
    assert (limits.min, limits.max) == (2, 8)
    assert (limits.down.cooldown, limits.down.stabilization) == (300.0, 30.0)
    assert limits_of(policy("{Decode: {max: null, up: null, down: {cooldown: null}}}"), "Decode", DEFAULTS) == DEFAULTS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{Decode: {mim: 2}}", "Decode.mim: Extra inputs are not permitted"),
        ("{Decode: {down: {cooldown: soon}}}", "Decode.down.cooldown: write a duration"),
        ("{Decode: {min: 5, max: 2}}", "min is 5 and max 2"),
        ("{Decode: {up: {step: 2}}}", "step requires a cooldown"),
        ("{Decoder: {min: 2}}", "there is no component Decoder; there are Decode, and *"),
        ("[1]", "write an object by component"),
        ("{", "neither YAML nor JSON"),
        ("{a: " + "x" * 20_000 + "}", "longer than"),
        ("{Decode: {min: 2001-99-99}}", "Decode.min"),
        ("{Decode: {min: " + "1" * 5000 + "}}", "Decode.min"),
        ("{Decode: {min: !!int x}}", "neither YAML nor JSON"),
        ("[" * 5000, "nested more than 32 levels deep"),
        ("Decode: {min: 2}\n---\nDecode: {max: 3}", "write an object by component"),
    ],
)
def test_an_invalid_annotation_lifts_no_limit(text: str, words: str) -> None:
    with pytest.raises(InvalidPolicyError, match=SCALING_POLICY) as caught:
        limits_of(policy(text), "Decode", DEFAULTS)
    assert words in str(caught.value)
