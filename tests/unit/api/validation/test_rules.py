"""Every rule, in each of its versions: its exact message, and no other finding.

Of what is refused, tests/admission/cases has a manifest for each message and version, which tests/unit/admission shows; what
they do not show is here: warnings, what is fine, and the borders between.
"""

import copy
import re
from collections.abc import Iterable
from typing import Any

import pytest
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.validation import validate, view
from dynamo_shared.api.validation.check import REFUSING, WARNING
from dynamo_shared.api.validation.rule_set import Rule

from tests.admission.case import FACTS, load

from .building import ALPHA, BETA, MAIN, PLAIN, Case, manifest
from .cases import CASES

EACH = pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
RULES = [rule for rule_set in (*REFUSING, *WARNING) for rule in rule_set.rules]


@EACH
def test_rules_report_the_expected_findings(case: Case) -> None:
    before = copy.deepcopy((case.obj, case.old))
    result = validate(case.obj, case.old, case.facts)
    findings = (*(f"error: {each}" for each in result.errors), *(f"warning: {each}" for each in result.warnings))
    assert findings == case.findings
    assert (case.obj, case.old) == before


@EACH
def test_rejected_cases_are_valid_in_the_schema(case: Case) -> None:
    """Otherwise the schema would report the object, too."""
    if case.obj["apiVersion"].startswith("nvidia.com/"):
        assert schema_errors(case.obj, embedded=False) == []


@pytest.mark.parametrize("version", [ALPHA, BETA])
@pytest.mark.parametrize("spec", [[], "x", {"services": [], "components": {}}])
def test_unreadable_values_are_left_to_the_schema(version: str, spec: Any) -> None:
    graph = manifest("DynamoGraphDeployment", version, spec)
    assert validate(graph, None, PLAIN).errors == ()
    assert schema_errors(graph) != []


_TEMPLATE = {"spec": {"containers": [{**MAIN, "command": ["sh", "-c"], "args": ["exec python3 -m dynamo.vllm"]}]}}
_ROLES = [{"name": "leader", "podTemplate": _TEMPLATE}, {"name": "worker", "podTemplate": _TEMPLATE}]


@pytest.mark.parametrize(
    ("pods", "name", "times"),
    [
        pytest.param({"podTemplate": _TEMPLATE}, "is_own_launch", 1, id="launch"),
        pytest.param({"roles": _ROLES}, "engines_started", 2, id="roles"),
    ],
)
def test_a_script_is_read_once_for_all_rules(
    pods: dict[str, Any], name: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script of 1 MB takes 0.1 s, in which the webhook answers no other request."""
    read = getattr(view, name)
    lines: list[list[str]] = []

    def counted(line: Iterable[str], *engine: str) -> Any:
        lines.append(list(line))
        return read(lines[-1], *engine)

    monkeypatch.setattr(view, name, counted)
    spec = {"components": [{"name": "a", "type": "worker", "multinode": {"nodeCount": 2}, **pods}]}
    validate(manifest("DynamoGraphDeployment", BETA, spec), None, PLAIN)
    assert len(lines) == times


def test_case_names_are_unique() -> None:
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def said() -> set[tuple[str, str, str]]:
    """The messages of all cases and invalid manifests: rule, version, and the message's template."""
    heard: set[tuple[str, str, str]] = set()

    subjects = [(case.obj, case.old, case.facts) for case in CASES]
    subjects += [
        (bad.manifest, bad.standing, FACTS[bad.cluster]) for bad in load() if bad.offline is None and bad.scale is None
    ]
    message = Rule.message
    with pytest.MonkeyPatch.context() as patch:
        for obj, old, facts in subjects:
            version = obj["apiVersion"].rpartition("/")[2]

            def listening(rule: Rule, problem: str | dict[str, object], version: str = version) -> str:
                said = message(rule, problem)
                heard.add((rule.name, version, _template(rule, said)))
                return said

            patch.setattr(Rule, "message", listening)
            validate(obj, old, facts)
    return heard


def _template(rule: Rule, message: str) -> str:
    for template in rule.says:
        pattern = ".*".join(re.escape(part) for part in re.split(r"\{\w+\}", template))
        if re.fullmatch(pattern, message, re.DOTALL):
            return template
    raise AssertionError(f"{rule.name} reports a message that the docs do not list: {message}")


@pytest.mark.parametrize(
    ("rule", "version"),
    [
        pytest.param(rule, version, id=f"{rule.name} ({', '.join(rule.kinds)} {version})")
        for rule in RULES
        for version in rule.versions
    ],
)
def test_every_rule_has_a_case_in_each_version(rule: Rule, version: str, said: set[tuple[str, str, str]]) -> None:
    assert any(name == rule.name and of == version for name, of, _ in said)


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in RULES])
def test_every_message_has_a_case(rule: Rule, said: set[tuple[str, str, str]]) -> None:
    heard = {template for name, _, template in said if name == rule.name}
    assert heard == set(rule.says)


def test_rules_have_unique_names_and_a_sentence_for_docs() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(rule.about.endswith(".") for rule in RULES)


def test_only_the_first_of_thousands_of_missing_containers_are_named() -> None:
    """Each message names the existing containers, of which there may be thousands, too."""
    named = [f"gone-{number}" for number in range(3000)]
    containers = [{"name": "main", "image": "engine:1"}, *({"name": f"c{number}"} for number in range(3000))]
    memory = {"gpuMemoryService": {"mode": "IntraPod", "extraClientContainers": named}}
    part = {"name": "w", "type": "worker", "podTemplate": {"spec": {"containers": containers}}, "experimental": memory}
    refused = validate(manifest("DynamoGraphDeployment", BETA, {"components": [part]}), None, PLAIN).errors
    messages = [each.message for each in refused if "extraClientContainers" in each.path]
    assert len(messages) == 10
    assert messages[0] == (
        f"'gone-0' is not a container of podTemplate.spec.containers ({', '.join(f'c{number}' for number in range(25))} and "
        "2975 more): add it there, or leave it out"
    )
