"""What the containers have that the platform adds: nothing as the operator, or what a quota of the namespace asks for."""

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
    """A configuration of rendering with these settings."""
    settings = Settings.model_validate({"platform": {"addedContainers": added}})
    rendered = render_config(settings, lambda _: False, {})
    return replace(config, init_container=rendered.init_container, memory_server=rendered.memory_server)


def resources(**added: Any) -> dict[str, Any]:
    """Resources of the containers that are added to a worker that waits for its leader and shares GPU memory, by name."""
    single = gms.worker(gms.WITHIN_FAILOVER, "-tp", "4", multinode={"nodeCount": 2})
    _, follower = gms.pods(single, configured(gms.CLAIMING, **added))
    return {each["name"]: each["resources"] for each in follower["initContainers"]}


CLAIM = {"claims": [{"name": "intrapod-shared-gpu"}]}


def test_without_a_word_they_have_what_those_of_the_operator_have() -> None:
    assert resources() == {"wait-for-leader-mp": {}, "gms-server": CLAIM}


def test_they_have_what_the_settings_say() -> None:
    made = resources(init=INIT, gpuMemoryServer=SERVER)
    assert made == {"wait-for-leader-mp": INIT, "gms-server": {**SERVER, **CLAIM}}


def test_the_directory_of_memory_between_pods_is_opened_with_the_same() -> None:
    children = graph_children(graph(gms.worker(gms.BETWEEN), backendFramework="vllm"), configured(gms.GROVE, init=INIT))
    (made,) = of_kind(children, "PodCliqueSet")
    opened = [each["spec"]["podSpec"]["initContainers"] for each in made["spec"]["template"]["cliques"]]
    assert opened
    assert all(each["resources"] == INIT for (each,) in opened)


def test_a_word_in_place_of_an_amount_is_refused() -> None:
    with pytest.raises(ValidationError, match="cpu"):
        resources(init={"limits": {"cpu": "much"}})
