"""The generated reference: every kind, field and name is listed once, links work, generators match it."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from dynamo_ctl.services import SERVICES
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.deprecations import DEPRECATIONS
from dynamo_shared.wire.specifications import COMMANDS, EVENTS

from tools.generate import configuration, reference, services
from tools.generate.__main__ import main
from tools.generate.files import Generator, run
from tools.generate.reference import ending, kinds
from tools.generate.reference.fields import fields, limits_of, type_of
from tools.generate.reference.markdown import table

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
VERSIONS = [(definition, version) for definition in DEFINITIONS for version in definition.versions]


def test_published_pages_match_the_code() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize(
    ("definition", "version"),
    VERSIONS,
    ids=[f"{definition.kind}-{version.resource.version}" for definition, version in VERSIONS],
)
def test_a_page_of_a_kind_has_every_field_once(definition: object, version: object) -> None:
    text = kinds.kind_page(definition, version)  # type: ignore[arg-type]
    listed = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    desired = [
        each.path
        for each in fields(schema_of(version.resource))  # type: ignore[attr-defined]
        if not each.is_element and each.path not in ("apiVersion", "kind", "metadata")
    ]
    assert [path for path in listed if not path.endswith(("[]", "{}"))] == desired
    assert len(listed) == len(set(listed))


def test_tables_are_well_formed() -> None:
    for path, text in reference.outputs(ROOT).items():
        if path.suffix == ".md":
            for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
                bars = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
                assert len(bars) == 1, path


def test_links_of_all_pages_work() -> None:
    broken = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")):
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(#[^)]*)?\)", prose):
            file = (page.parent / target).resolve() if target else page
            if not file.exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
            elif anchor and file.suffix == ".md" and anchor[1:] not in anchors(file):
                broken.append(f"{page.relative_to(ROOT)}: {target}{anchor}")
    assert not broken


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub creates for headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_index_links_every_page() -> None:
    index = (DOCS / "reference" / "README.md").read_text()
    pages = {str(page.relative_to(DOCS / "reference")) for page in (DOCS / "reference").rglob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(([^)]+\.md)\)", index)) >= pages


def test_every_deprecation_is_listed() -> None:
    text = ending.ending_page()
    for each in DEPRECATIONS:
        assert f"`{each.path}`" in text if each.path else each.kinds[0] in text
        assert each.since in text


def test_every_event_and_command_is_listed() -> None:
    text = (DOCS / "reference" / "events.md").read_text()
    assert all(f"`{spec.type}`" in text for spec in EVENTS)
    assert all(f"`{spec.type}`" in text for spec in COMMANDS)


def test_metrics_of_every_service_are_listed_with_their_exposed_names() -> None:
    text = services.metrics_page()
    assert set(services.service_modules("metrics")) <= set(SERVICES)
    assert set(re.findall(r"^## (.+)$", text, re.MULTILINE)) == {
        "Every service",
        "NATS",
        *services.service_modules("metrics"),
    }
    defined = set()
    for source in [*ROOT.glob("shared/src/**/metrics.py"), *ROOT.glob("services/*/src/**/metrics.py")]:
        defined |= set(re.findall(r"(?:Counter|Gauge|Histogram)\(\s*\"(dynamo_\w+)\"", source.read_text()))
    assert defined
    listed = {name.removesuffix("_total") for name in re.findall(r"^\| `(dynamo_\w+)`", text, re.MULTILINE)}
    assert {name.removesuffix("_total") for name in defined} <= listed


def test_the_schema_of_the_settings_accepts_the_example_of_its_page() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(configuration.schema()))
    validator.check_schema(validator.schema)
    (example,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "reference" / "configuration.md").read_text(), re.DOTALL)
    validator.validate(yaml.safe_load(example))
    for settings, fine in [
        ({"platform": {"resync": "1h30m"}}, True),
        ({"platform": {"resync": 90}}, True),
        ({"platform": {"resync": "soon"}}, False),
        ({"platform": {"resynk": 90}}, False),
        ({"logging": {"level": "loud"}}, False),
    ]:
        assert validator.is_valid(settings) is fine, settings


def test_types_and_limits_are_described_in_words() -> None:
    schema = {
        "type": "object",
        "$defs": {"Mode": {"type": "string", "enum": ["a", "b"]}},
        "properties": {
            "mode": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}]},
            "count": {"type": ["integer", "null"], "minimum": 1},
            "modes": {"type": "array", "items": {"$ref": "#/$defs/Mode"}, "maxItems": 3},
            "by": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
            "amount": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "pod": {"type": "object", "x-dynamo-embedded": {"type": "io.k8s.api.core.v1.PodSpec", "optional": []}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
        "required": ["count"],
    }
    results = {each.path: each for each in fields(schema)}
    assert {path: type_of(each.schema) for path, each in results.items() if not each.is_element} == {
        "mode": "string",
        "count": "integer",
        "modes": "list of strings",
        "by": "map of integer (int32)",
        "amount": "integer or string",
        "pod": "core/v1 PodSpec",
        "free": "any object",
    }
    assert limits_of(results["mode"].schema) == ["one of `a`, `b`"]
    assert limits_of(results["count"].schema) == ["at least 1"]
    assert limits_of(results["modes"].schema) == ["at most 3 items"]
    assert (results["count"].required, results["count"].nullable, results["mode"].required) == (True, True, False)


def test_cells_are_one_line_of_text() -> None:
    assert table(("A",), [("a|b\n c of <name>, `<x>`",)]).splitlines()[2] == "| a\\|b c of &lt;name>, `<x>` |"


def test_leftover_files_of_a_generator_are_reported_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "old.md").touch()

    generator = Generator("pages", lambda root: {root / "pages" / "new.md": "new"}, (("pages", "*.md"),))

    def generate(*, check: bool) -> int:
        return run([generator], tmp_path, check=check)

    assert generate(check=True) == 1
    assert capsys.readouterr().out.splitlines() == ["differs: pages/new.md", "left over: pages/old.md"]
    assert generate(check=False) == 0
    assert capsys.readouterr().out.splitlines() == ["wrote: pages/new.md", "removed: pages/old.md"]
    assert generate(check=True) == 0
