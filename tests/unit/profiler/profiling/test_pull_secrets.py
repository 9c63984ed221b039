"""Pull secrets of an override reach all pods, also those of roles with pod templates of their own."""

from typing import Any

import pytest
from dynamo_profiler.profiling.generation.pull_secrets import share_pull_secrets

SECRETS = {"imagePullSecrets": [{"name": "mine"}]}


def roles(*pods: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "podTemplate": {"spec": pod}} for name, pod in zip(("leader", "worker"), pods, strict=True)]


@pytest.mark.parametrize(
    "spec",
    [
        {"components": [{"name": "w", "roles": roles({}, SECRETS)}]},
        {"services": {"w": {"roles": roles(SECRETS, {})}}},
        {"services": {"w": {"roles": [None, 1, {"podTemplate": []}, *roles(SECRETS, {})]}}},
    ],
)
def test_pull_secrets_of_a_role_reach_the_pods_of_all_components(spec: dict[str, Any]) -> None:
    graph = {"spec": {"components": [{"name": "f"}]}}
    (made,) = share_pull_secrets(graph, {"spec": spec})["spec"]["components"]
    assert made["podTemplate"]["spec"] == SECRETS


@pytest.mark.parametrize("template", [{}, {"podTemplate": None}])
def test_pods_of_each_role_get_the_pull_secrets(template: dict[str, Any]) -> None:
    other = {"imagePullSecrets": [{"name": "other"}]}
    graph = {"spec": {"components": [{"name": "w", "multinode": {}, "roles": roles({}, other), **template}]}}
    override = {"spec": {"components": [{"name": "f", "podTemplate": {"spec": SECRETS}}]}}
    (made,) = share_pull_secrets(graph, override)["spec"]["components"]
    assert made.get("podTemplate") is None
    leader, worker = (each["podTemplate"]["spec"]["imagePullSecrets"] for each in made["roles"])
    assert leader == SECRETS["imagePullSecrets"]
    assert worker == [*other["imagePullSecrets"], *SECRETS["imagePullSecrets"]]
