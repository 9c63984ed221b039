"""Resources of the containers that the platform adds: none, as in the operator, or those that a quota requires."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.render import RenderConfig
from dynamo_shared.runtime import Settings
from pydantic import ValidationError

from . import test_gpu_memory as gms
from .building import graph, graph_children, of_kind

INIT = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}}
SERVER = {"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}}


def configured(config: RenderConfig, **added: Any) -> RenderConfig:
    """A render configuration with these settings."""
    settings = Settings.model_validate({"platform": {"addedContainers": added}})
    rendered = render_config(settings, lambda _: False, {})
    return replace(config, init_container=rendered.init_container, memory_server=rendered.memory_server)


def resources(**added: Any) -> dict[str, Any]:
    """Resources, by name, of the containers added to a worker that waits for its leader and shares GPU memory."""
    single = gms.worker(gms.WITHIN_FAILOVER, "-tp", "4", multinode={"nodeCount": 2})
    _, follower = gms.pods(single, configured(gms.CLAIMING, **added))
    return {each["name"]: each["resources"] for each in follower["initContainers"]}


CLAIM = {"claims": [{"name": "intrapod-shared-gpu"}]}


def test_by_default_they_have_the_resources_of_the_operators_containers() -> None:
    assert resources() == {"wait-for-leader-mp": {}, "gms-server": CLAIM}


def test_they_have_the_resources_of_the_settings() -> None:
    made = resources(init=INIT, gpuMemoryServer=SERVER)
    assert made == {"wait-for-leader-mp": INIT, "gms-server": {**SERVER, **CLAIM}}


def test_the_container_that_opens_the_memory_directory_between_pods_has_them_too() -> None:
    children = graph_children(graph(gms.worker(gms.BETWEEN), backendFramework="vllm"), configured(gms.GROVE, init=INIT))
    (made,) = of_kind(children, "PodCliqueSet")
    opened = [each["spec"]["podSpec"]["initContainers"] for each in made["spec"]["template"]["cliques"]]
    assert opened
    assert all(each["resources"] == INIT for (each,) in opened)


def test_an_invalid_quantity_is_rejected() -> None:
    with pytest.raises(ValidationError, match="cpu"):
        resources(init={"limits": {"cpu": "much"}})
