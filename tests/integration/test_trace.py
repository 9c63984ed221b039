"""One change of a graph is one trace, from the watcher over NATS to the writes of the pod-builder."""

import pytest
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.runtime import controller
from dynamo_watcher import follower
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from .platform import frontend, graph, platform, settings, until_state


async def test_a_new_graph_is_one_trace(
    control_plane, nats_server, kube, namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # Not the global provider: it can be set only once, and other tests must not be traced.
    for module, name in ((follower, "watcher"), (controller, "platform")):
        monkeypatch.setattr(module, "tracer", provider.get_tracer(name))
        monkeypatch.setattr(module, "is_traced", lambda: True)
    async with platform(settings(control_plane.kubeconfig, nats_server.url)):
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend()]))
        await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    spans = exporter.get_finished_spans()
    key = f"{namespace}/disagg"
    watched = [
        span
        for span in spans
        if span.name == "watch DynamoGraphDeployment" and (span.attributes or {}).get("key") == key
    ]
    begun = {span.context.trace_id for span in watched}
    assert len(begun) == len(watched), "each change has its own"
    assert begun & {span.context.trace_id for span in spans if span.name == "reconcile dynamographdeployments"}
    # Objects of the graph are reconciled in its trace, or in that of their own watch event if that arrives first.
    begun |= {span.context.trace_id for span in spans if span.name == "watch DynamoComponentDeployment"}
    assert begun & {span.context.trace_id for span in spans if span.name == "reconcile dynamocomponentdeployments"}
