"""Variables that the settings give to all graphs, with less precedence than those of graphs and components."""

from dataclasses import replace

import pytest
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.render import RenderConfig
from dynamo_shared.runtime import Settings
from pydantic import ValidationError

from .building import CONFIG, component, graph, main, pod, variables, workloads


def configured(**variables_of_all: str) -> RenderConfig:
    settings = Settings.model_validate({"platform": {"graphEnv": variables_of_all}})
    return replace(CONFIG, graph_env=render_config(settings, lambda _: False, {}).graph_env)


def test_all_components_get_them_and_their_own_values_win() -> None:
    config = configured(DYN_HTTP_HOST="::", NCCL_DEBUG="WARN", OF_THE_GRAPH="no", OF_THE_COMPONENT="no")
    own = component(main={"env": [{"name": "OF_THE_COMPONENT", "value": "yes"}]})
    container = main(own, config, env=[{"name": "OF_THE_GRAPH", "value": "yes"}])
    given = {"DYN_HTTP_HOST": "::", "NCCL_DEBUG": "WARN", "OF_THE_GRAPH": "yes", "OF_THE_COMPONENT": "yes"}
    assert variables(container).items() >= given.items()


def test_containers_that_do_not_run_dynamo_get_none() -> None:
    sidecar = component(sidecars=[{"name": "logs", "image": "logs:1"}])
    main_container, logs = pod(sidecar, configured(A="b"))["containers"]
    assert variables(main_container)["A"] == "b"
    assert "env" not in logs


def test_without_variables_nothing_changes() -> None:
    obj = graph(component(), component("Frontend", "frontend"))
    assert workloads(obj, configured()) == workloads(obj, CONFIG)


@pytest.mark.parametrize("name", ["", "1A", "A=B", "A B", "A" * 254])
def test_an_invalid_name_is_rejected(name: str) -> None:
    with pytest.raises(ValidationError, match="graphEnv"):
        configured(**{name: "x"})
