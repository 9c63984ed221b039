"""The Dynamo runtime as a sidecar: an init container `runtime` that keeps running next to an engine without Dynamo
code.

The rules are those of Dynamo 1.6 ("Dynamo Sidecar Mode"). There, the name selects the mode. Here, an init container of
that name that ends still only prepares something, as before the mode existed.
"""

from collections.abc import Iterator

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import RUNTIME
from dynamo_shared.api.rules import Location
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, RuleSet, Violations, broken
from dynamo_shared.api.validation.view import ComponentView

SIDECARS = RuleSet("Runtime as a sidecar", (GRAPH, COMPONENT))
ABOUT_SIDECARS = RuleSet("Runtime as a sidecar", (GRAPH, COMPONENT))


@SIDECARS.rule(
    f"an init container {RUNTIME} that keeps running is the Dynamo runtime of an engine, but {{type}} is {{observed}}: "
    "rename the container, or write worker, prefill or decode"
)
def only_workers_have_the_runtime_as_a_sidecar(component: ComponentView, _facts: Facts) -> Violations:
    """Only a worker has an engine, so only a worker can have the runtime as a sidecar."""
    if (sidecar := component.sidecar) is None or component.is_worker or sidecar.value.get("restartPolicy") != "Always":
        return
    observed = shown(component.type) if component.type else "not set"
    yield broken((*sidecar.at, "name"), type=component.words.type, observed=observed)


@SIDECARS.rule(
    f"cannot be combined with an init container {RUNTIME} that keeps running: next to it the engine is not Dynamo's own, "
    "and the platform does not change its command and its pod; leave one of the two out"
)
def engines_next_to_the_runtime_stay_as_they_are(component: ComponentView, _facts: Facts) -> Violations:
    """An engine with the runtime as a sidecar runs on one node, does not share GPU memory, and starts from no checkpoint."""
    if component.runtime_is_sidecar:
        for at in _changing_engines(component):
            yield broken(at)


def _changing_engines(component: ComponentView) -> Iterator[Location]:
    if component.nodes > 1:
        yield component.field("multinode")
    if component.gms is not None:
        yield component.gms.at
    if component.failover is not None:
        yield component.failover.at
    if component.checkpoint is not None:
        yield component.checkpoint


@ABOUT_SIDECARS.rule(
    "ends before main starts. In Dynamo 1.6 and later, this name is for the runtime as a sidecar: if the container "
    "is the runtime, write restartPolicy: Always, otherwise rename it",
    added=True,
)
def sidecars_do_not_end(component: ComponentView, _facts: Facts) -> Violations:
    """An init container with the name of the runtime keeps running."""
    if (sidecar := component.sidecar) is not None and sidecar.value.get("restartPolicy") != "Always":
        yield broken(sidecar.at)


@ABOUT_SIDECARS.rule(
    "missing: the runtime is ready before the engine has loaded, so the pod gets requests, and a roll-out "
    "continues, too early; add a readinessProbe that checks the engine to the engine's container",
    added=True,
)
def engines_next_to_the_runtime_say_when_they_serve(component: ComponentView, _facts: Facts) -> Violations:
    """An engine with the runtime as a sidecar has its own readiness probe: the platform has no default for unknown engines."""
    main, at = component.main
    on_service = component.is_alpha and component.spec.get("readinessProbe")
    if component.runtime_is_sidecar and component.nodes == 1 and not (on_service or main.get("readinessProbe")):
        yield broken((*at, "readinessProbe"))
