"""A local cluster gives `view` and `edit` the rights that the chart gives them."""

from pathlib import Path
from typing import Any

import yaml
from dynamo_ctl.aggregated_roles import aggregated_roles

RENDERED = Path(__file__).parents[2] / "charts" / "goldens" / "default.yaml"


def by_end(roles: Any) -> dict[str, Any]:
    """Rules and aggregation labels of roles, by the last part of their names."""
    return {
        role["metadata"]["name"].rpartition("-")[2]: (
            sorted(label for label in role["metadata"]["labels"] if "aggregate-to" in label),
            role["rules"],
        )
        for role in roles
    }


def test_the_rules_are_those_of_the_chart():
    of_the_chart = [
        each
        for each in yaml.load_all(RENDERED.read_text(), yaml.CSafeLoader)
        if each
        and each["kind"] == "ClusterRole"
        and any("aggregate-to" in label for label in each["metadata"].get("labels", ()))
    ]
    assert by_end(aggregated_roles()) == by_end(of_the_chart)
    assert sorted(by_end(of_the_chart)) == ["edit", "view"]
