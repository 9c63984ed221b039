"""Detects the inference engine of a worker in its command line (reference behaviour, section 3.3)."""

from collections.abc import Iterable

from dynamo_shared.api.engines.started import engines_started, line_of
from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.render.errors import RenderError

_PATH = "podTemplate.spec.containers[main].command"


def detect(container: KubeObject | None) -> frozenset[str]:
    """The engines that a main container starts: none, one, or several."""
    if container is None:
        return frozenset()
    return engines_started(line_of(container))


def one_engine(component: str, container: KubeObject | None, explicit: str | None) -> str:
    """Engine of a worker: the one that its command starts, otherwise the named one; "" if neither is known.

    Raises RenderError if the command starts another engine than the named one, or several and none is named.
    """
    engines = detect(container)
    if len(engines) == 1:
        (engine,) = engines
        if explicit and explicit != engine:
            raise RenderError(
                component,
                "backendFramework",
                f"is {explicit}, but the command starts dynamo.{engine}",
                "make them agree, or remove backendFramework",
            )
        return engine
    if explicit:
        return explicit
    if engines:
        raise RenderError(
            component, _PATH, f"starts several engines: {', '.join(sorted(engines))}", "run one engine a component"
        )
    return ""


def engine_of_graph(workers: Iterable[tuple[str, KubeObject | None]], explicit: str | None) -> str:
    """The engine of all workers of a graph, given by component name and main container; "" if unknown."""
    engines: dict[str, str] = {}
    for component, container in workers:
        engine = one_engine(component, container, explicit)
        if engine:
            engines.setdefault(engine, component)
    if explicit:
        return str(explicit)
    if len(engines) > 1:
        listed = ", ".join(f"{component} runs {engine}" for engine, component in sorted(engines.items()))
        raise RenderError("", "spec.components", f"workers run different engines: {listed}", "use one engine a graph")
    return next(iter(engines), "")
