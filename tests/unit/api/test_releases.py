"""Releases: what counts as a breaking change, and that the policy allows none without notice."""

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from dynamo_shared.api.deprecations import Deprecation
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tools.releases import Change, Snapshot, breaking, compare, releases, today, violations
from tools.releases.__main__ import main
from tools.releases.history import file_of, text

ROOT = Path(__file__).resolve().parents[3]
GRAPH = "DynamoGraphDeployment"
REPLICAS = "spec.components[].replicas"
Edit = Callable[[Snapshot], object]


@cache
def now() -> Snapshot:
    """The release of this checkout; no test changes it."""
    return today(ROOT, "0.3.0")


@cache
def written() -> str:
    """Its file."""
    return text(now())


def fields(snapshot: Snapshot, kind: str = GRAPH, version: str = "v1beta1") -> dict[str, Any]:
    results: dict[str, Any] = snapshot["kinds"][kind]["versions"][version]["fields"]
    return results


def edited(edit: Edit) -> Snapshot:
    snapshot: Snapshot = json.loads(written())
    edit(snapshot)
    return snapshot


def without(snapshot: Snapshot, path: str, kind: str = GRAPH, version: str = "v1beta1") -> None:
    result = fields(snapshot, kind, version)
    for each in [name for name in result if name == path or name.startswith((f"{path}.", f"{path}[", f"{path}{{"))]:
        del result[each]


def test_an_unchanged_api_has_no_change() -> None:
    assert compare(now(), now()) == []
    assert compare(json.loads(written()), now()) == [], "a release's file holds all that is compared"


# A change of the current API, its report, and whether it is breaking.
CHANGES: list[tuple[Edit, str, bool]] = [
    (lambda s: without(s, REPLICAS), f"{GRAPH} v1beta1 {REPLICAS}: the field was removed", True),
    (lambda s: without(s, "spec.components"), f"{GRAPH} v1beta1 spec.components: the field was removed", True),
    (lambda s: fields(s)[REPLICAS].update(type="string"), "type integer (int32) became string", True),
    (lambda s: fields(s)[REPLICAS].update(type="integer (int64)"), "type integer (int32) became integer (int64)", True),
    (lambda s: fields(s)[REPLICAS].update(required=True), "is required now", True),
    (lambda s: fields(s)["spec.components[].name"].pop("required"), "is optional now", False),
    (lambda s: fields(s)[REPLICAS].update(default=1), "default 1 was added", True),
    (lambda s: fields(s)["spec.components[].multinode.nodeCount"].update(default=3), "default 2 became 3", True),
    (lambda s: fields(s)["spec.components[].multinode.nodeCount"].pop("default"), "default 2 was removed", True),
    (lambda s: fields(s)[REPLICAS].update(minimum=1), "minimum 0 became 1", True),
    (lambda s: fields(s)[REPLICAS].update(minimum=-1), "minimum 0 became -1", False),
    (lambda s: fields(s)[REPLICAS].pop("minimum"), "minimum 0 was removed", False),
    (lambda s: fields(s)[REPLICAS].update(maximum=9), "maximum 9 is new", True),
    (lambda s: fields(s)["spec.components"].update(maxItems=10), "maxItems 25 became 10", True),
    (lambda s: fields(s)["spec.components"].update(maxItems=50), "maxItems 25 became 50", False),
    (lambda s: fields(s)["spec.backendFramework"]["enum"].remove("sglang"), "no longer allows sglang", True),
    (lambda s: fields(s)["spec.backendFramework"]["enum"].append("tgi"), "also allows tgi", False),
    (lambda s: fields(s)["spec.backendFramework"].pop("enum"), "allows any value now", False),
    (lambda s: fields(s)[REPLICAS].update(enum=[1, 2]), "allows only 1, 2 now, before any value", True),
    (lambda s: fields(s)["spec.components"].pop("listType"), "list type map was removed", True),
    (lambda s: fields(s)["spec.components"].update(listKeys=["type"]), "list keys ['name'] became ['type']", True),
    (lambda s: fields(s)[REPLICAS].update(rules=["self > 1"]), "the rule self > 1 is new", True),
    (lambda s: fields(s)["spec.components"]["rules"].clear(), "was removed", False),
    (lambda s: fields(s)[REPLICAS].update(pattern="^a$"), "pattern ^a$ was added", True),
    (lambda s: fields(s).update({"spec.shiny": {"type": "string"}}), "spec.shiny: the field is new", False),
    (
        lambda s: fields(s).update({"spec.shiny": {"type": "string", "required": True}}),
        "spec.shiny: the field is new, and required",
        True,
    ),
    (
        lambda s: fields(s).update({"spec.shiny": {"type": "string", "required": True, "default": "x"}}),
        "spec.shiny: the field is new",
        False,
    ),
    (lambda s: s["kinds"].pop("DynamoModel"), "DynamoModel v1alpha1: the kind was removed", True),
    (lambda s: s["kinds"][GRAPH]["versions"].pop("v1alpha1"), "v1alpha1: the version is no longer served", True),
    (lambda s: s["kinds"][GRAPH]["versions"].update(v1={"subresources": {}, "fields": {}}), "version is new", False),
    (lambda s: s["kinds"][GRAPH].update(storage="v1"), f"{GRAPH} storage: v1beta1 became v1", True),
    (lambda s: s["kinds"][GRAPH].update(scope="Cluster"), "scope: Namespaced became Cluster", True),
    (lambda s: s["kinds"][GRAPH]["shortNames"].clear(), "shortNames: dgd was removed", True),
    (lambda s: s["kinds"][GRAPH]["shortNames"].append("graph"), "shortNames: graph is new", False),
    (
        lambda s: s["kinds"][GRAPH]["versions"]["v1beta1"]["subresources"].pop("status"),
        "the subresource /status was removed",
        True,
    ),
    (
        lambda s: s["labels"].pop("nvidia.com/selector"),
        "labels nvidia.com/selector: the name was removed (stable)",
        True,
    ),
    (lambda s: s["labels"].update({"nvidia.com/shiny": "stable"}), "labels nvidia.com/shiny: the name is new", False),
    (lambda s: s["environment"].pop("DYN_NAMESPACE"), "environment DYN_NAMESPACE: the name was removed (stable)", True),
    (lambda s: s["annotations"].update({"nvidia.com/restartAt": "evolving"}), "stable became evolving", True),
    (lambda s: s["ports"].update(HTTP="8001 http"), "ports HTTP: 8000 http became 8001 http", True),
    (lambda s: s["ports"].pop("HTTP"), "ports HTTP: the port 8000 http was removed", True),
    (lambda s: s["events"].pop("deployment.ready.v1"), "events deployment.ready.v1: removed", True),
    (lambda s: s["events"]["deployment.ready.v1"].update(subject="x"), "the subject dynamo.evt.v1.", True),
    (
        lambda s: s["events"]["deployment.ready.v1"]["fields"].pop("state"),
        "events deployment.ready.v1 state: the field was removed",
        True,
    ),
    (lambda s: s["settings"].pop("logging.level"), "settings logging.level: the field was removed", True),
    (lambda s: s["settings"]["server.metrics.port"].update(default=1), "default 8080 became 1", True),
    (
        lambda s: s["contracts"]["features.planner"]["fields"]["ttft_ms"].update(default=1),
        "contracts features.planner ttft_ms: default 500.0 became 1",
        True,
    ),
]


@pytest.mark.parametrize(("edit", "said", "felt"), CHANGES, ids=[said[:70] for _, said, _ in CHANGES])
def test_a_change_is_reported_once_and_classified(edit: Edit, said: str, felt: bool) -> None:
    changes = compare(now(), edited(edit))
    assert len({change.path for change in changes}) == 1, [str(change) for change in changes]
    assert said in str(changes[0])
    assert changes[0].breaking is felt


def every_field() -> list[tuple[str, str, str]]:
    return [
        (kind, version, path)
        for kind, each in now()["kinds"].items()
        for version, there in each["versions"].items()
        for path in there["fields"]
        if path and not path.endswith(("[]", "{}"))
    ]


@examples(30)
@given(field=st.deferred(lambda: st.sampled_from(every_field())))
def test_a_removed_field_of_any_version_is_detected(field: tuple[str, str, str]) -> None:
    kind, version, path = field
    (change,) = compare(now(), edited(lambda snapshot: without(snapshot, path, kind, version)))
    assert (change.subject, change.version, change.path, change.breaking) == (kind, version, path, True)


def test_an_evolving_name_may_be_removed() -> None:
    last = edited(lambda s: s["labels"].update({"nvidia.com/new-idea": "evolving"}))
    assert [change.breaking for change in compare(last, now())] == [False]


def notice(path: str, version: str = "v1beta1", removed_in: str = "v0.3") -> Deprecation:
    return Deprecation((GRAPH,), version, path, "v0.1.0", "write something else", removed_in)


def history(releases: int, reported: int, path: str, version: str = "v1beta1") -> list[Snapshot]:
    """That many releases, of which the last ones announced the end of a field."""
    results = []
    for number in range(releases):
        snapshot = {**copy.deepcopy(now()), "release": f"0.{number + 1}.0", "deprecations": []}
        if number >= releases - reported:
            snapshot["deprecations"].append({"kind": GRAPH, "version": version, "path": path})
        results.append(snapshot)
    return results


def judged(past: list[Snapshot], registry: list[Deprecation], version: str = "0.3.0") -> list[str]:
    changes = compare(past[-1], edited(lambda s: without(s, REPLICAS)))
    assert breaking(changes)
    return list(violations(changes, past, version, registry))


def test_a_field_removed_without_notice_is_reported_with_the_remedy() -> None:
    (problem,) = judged(history(2, 0, REPLICAS), [])
    assert problem.startswith(f"{GRAPH} v1beta1 {REPLICAS}: the field was removed. It differs from release 0.2.0")
    assert "deprecations.py" in problem
    assert "restore it" in problem


def test_a_notice_must_be_in_two_releases() -> None:
    (none,) = judged(history(2, 0, REPLICAS), [notice(REPLICAS)])
    assert "in the file of no release" in none
    (one,) = judged(history(2, 1, REPLICAS), [notice(REPLICAS)])
    assert "in the file of 0.2.0" in one
    assert judged(history(2, 2, REPLICAS), [notice(REPLICAS)]) == []


def test_a_notice_for_the_version_or_a_parent_field_counts() -> None:
    assert judged(history(3, 2, ""), [notice("")]) == []
    assert judged(history(3, 2, "spec.components"), [notice("spec.components")]) == []
    assert judged(history(3, 2, "spec.comp"), [notice("spec.comp")]) != []


def test_notice_of_another_version_or_kind_does_not_count() -> None:
    assert judged(history(3, 2, "", "v1alpha1"), [notice("", "v1alpha1")]) != []


def test_a_field_promised_until_a_release_stays_until_then() -> None:
    late = [notice(REPLICAS, removed_in="v1.0")]
    (problem,) = judged(history(2, 2, REPLICAS), late)
    assert "promises it until v1.0, but this is 0.3.0" in problem
    assert judged(history(2, 2, REPLICAS), late, version="1.0.0") == []


def test_a_kind_may_be_removed_when_all_its_versions_had_notice() -> None:
    changes = compare(now(), edited(lambda s: s["kinds"].pop(GRAPH)))
    past = history(2, 2, "", "v1alpha1")
    problems = list(violations(changes, past, "1.0.0", [notice("", "v1alpha1"), notice("")]))
    assert [problem.split(":")[0] for problem in problems] == [f"{GRAPH} v1beta1"]


def test_compatible_changes_need_no_notice() -> None:
    changes = [Change(GRAPH, "v1beta1", "spec.shiny", "the field is new", False)]
    assert list(violations(changes, history(1, 0, ""), "0.3.0", [])) == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The part of a checkout that releases need, of version 0.1.0."""
    for name in ("shared/pyproject.toml", "proto/asyncapi.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    for file in (ROOT / "proto" / "schemas").rglob("*.json"):
        copied = tmp_path / file.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(file.read_text())
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    file_of(tmp_path, "0.1.0").parent.mkdir(parents=True)
    return tmp_path


def run(root: Path, *arguments: str) -> int:
    return main(["--root", str(root), *arguments])


def test_the_first_release_promises_the_existing_api(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(checkout, "check") == 0
    assert "there is no release yet" in capsys.readouterr().out
    assert run(checkout, "freeze") == 0
    assert run(checkout, "check") == 0
    assert run(checkout, "freeze") == 0, "freezing the same again changes nothing"


def test_a_field_removed_since_the_last_release_fails_the_check(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = today(checkout, "0.1.0")
    fields(last)["spec.gone"] = {"type": "string"}
    last["labels"]["nvidia.com/gone"] = "stable"
    file_of(checkout, "0.1.0").write_text(text(last))
    capsys.readouterr()
    assert run(checkout, "check") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [f"{GRAPH} v1beta1 spec.gone", "labels nvidia.com/gone"]
    assert "freeze --again" in lines[-1], "the file is of the version that is being worked on"
    assert run(checkout, "show") == 0
    assert f"breaking: {GRAPH} v1beta1 spec.gone: the field was removed" in capsys.readouterr().out


def test_a_release_is_overwritten_only_on_request(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = today(checkout, "0.1.0")
    fields(other)["spec.gone"] = {"type": "string"}
    file_of(checkout, "0.1.0").write_text(text(other))
    assert run(checkout, "freeze") == 1
    assert "differs, in 1 places that users notice" in capsys.readouterr().out
    assert run(checkout, "freeze", "--again") == 0
    assert run(checkout, "check") == 0


def test_a_release_that_violates_the_policy_is_not_written(checkout: Path) -> None:
    last = today(checkout, "0.1.0")
    fields(last)["spec.gone"] = {"type": "string"}
    file_of(checkout, "0.1.0").write_text(text(last))
    (checkout / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    assert run(checkout, "freeze") == 1
    assert not file_of(checkout, "0.2.0").exists()


def test_a_file_of_another_release_is_detected(checkout: Path) -> None:
    file_of(checkout, "0.1.0").write_text(text(today(checkout, "0.2.0")))
    with pytest.raises(ValueError, match=r"0\.1\.0\.json is of release 0\.2\.0"):
        run(checkout, "check")


def test_only_a_checkout_is_checked(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        run(tmp_path, "check")


def test_this_checkout_keeps_the_promises_of_its_last_release() -> None:
    assert releases(ROOT), "there is a release to keep to"
    assert run(ROOT, "check") == 0
