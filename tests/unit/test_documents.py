"""The documents: the start page links to each page, dynamoctl takes each command in them, and they keep to plain words
and to lines that fit.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from dynamo_ctl.cli import app
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.validation import Facts, validate

from tools import words

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]

LONGEST = 110


def named(page: Path) -> str:
    """A page by its path."""
    return page.relative_to(ROOT).as_posix()


def faults(page: Path) -> list[str]:
    """Replaced words of a page and its lines that are too long, each with its place."""
    faults = [f"{page.name}:{each.line}: {each.word!r}: write {each.instead}" for each in words.findings_of(page)]
    for number, line in enumerate(words.prose(page.read_text("utf-8")).splitlines(), 1):
        # A table's row is one line, and so is a link or a span of code that is long by itself.
        if len(line) > LONGEST and " " in line.strip() and not line.lstrip().startswith("|") and "](" not in line:
            faults.append(f"{page.name}:{number}: longer than {LONGEST} columns")
    return faults


def commands() -> Iterator[tuple[str, str]]:
    """Page and command line of each `dynamoctl` in the documents' console blocks."""
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r"\s[|>]\s?", line.split("  #")[0].removeprefix("$ ")):
                    written = part.strip().removeprefix(".venv/bin/")
                    if written.startswith("dynamoctl "):
                        yield page.name, written


def names_of_kinds() -> set[str]:
    """What kubectl takes for the platform's kinds, and for those of Kubernetes that pages name."""
    names = {
        *("configmap", "crd", "events", "job", "leases", "namespace", "pods", "pvc", "secret", "serviceaccount"),
        *("deployment", "statefulset", "clusterrolebinding", "endpointslices", "token"),
        *("mutatingwebhookconfiguration", "validatingwebhookconfiguration"),
    }
    for crd in crd_manifests():
        spec, given = crd["spec"], crd["spec"]["names"]
        called = {given["plural"], given["singular"], *given.get("shortNames", ())}
        full = {f"{name}.{each['name']}.{spec['group']}" for name in called for each in spec["versions"]}
        names |= called | full | {f"{name}.{spec['group']}" for name in called}
    return names


def test_a_command_of_kubectl_names_kinds_that_there_are() -> None:
    command = re.compile(
        r"kubectl (?:(?:-n|--namespace) \S+ )?(?:rollout restart|get|describe|delete|scale|patch|edit|annotate|wait|create) "
        r"([a-z][a-z0-9.,-]*)"
    )
    known = names_of_kinds()
    named_kinds = [
        (named(page), name)
        for page in PAGES
        for listed in command.findall(page.read_text("utf-8"))
        for name in listed.rstrip(".,").split(",")
    ]
    assert len(named_kinds) > 40
    assert [f"{page}: {name}" for page, name in named_kinds if name not in known] == []


def test_every_page_is_on_the_start_page() -> None:
    start = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([a-z0-9-]+\.md)[)#]", start))
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= linked


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def test_the_objective_of_the_readme_names_a_load() -> None:
    """Without one the graph takes all GPUs, and not the fewest, as the text says."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (request,) = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert request["kind"] == "DynamoGraphDeploymentRequest"
    assert list(validate(request, None, Facts()).errors) == []
    assert request["spec"]["workload"].keys() & {"requestRate", "concurrency"}


def test_no_page_has_a_placeholder() -> None:
    assert [page.name for page in PAGES if re.search(r"MEASURED_|TODO|TBD|FIXME", page.read_text("utf-8"))] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_has_plain_words_and_lines_that_fit(page: Path) -> None:
    assert faults(page) == []


def test_a_fault_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = "word " * 23
    page.write_text(f"# It is told\n\n```\nbeside {long}\n```\n\n{long}\n| {long} |\nSay `anew`.\nwhoever it is\n")
    assert [fault.split(":", 1)[1] for fault in faults(page)] == [
        "1: 'told': write report, say, distinguish",
        "10: 'whoever': write no one, the user, the caller, or the actor's name",
        "7: longer than 110 columns",
    ]


def test_the_files_that_pages_name_exist() -> None:
    # seeds.md quotes the reference's own tree, too.
    roots = [ROOT, ROOT / "shared/src", ROOT / "shared/src/dynamo_shared", *(ROOT / "services").glob("*/src")]
    path = re.compile(r"`((?:shared|services|tests|tools|proto|examples|helm|api|dynamo_[a-z_]+)/[\w/.-]+)`")
    assert [
        f"{named(page)}: {name}"
        for page in PAGES
        if page.name != "seeds.md"
        for name in path.findall(page.read_text("utf-8"))
        if not any((root / name).exists() for root in roots)
    ] == []


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_a_command_of_dynamoctl_is_one_that_it_takes(page: str, line: str) -> None:
    command: Any = typer.main.get_command(app)
    arguments = shlex.split(line)
    context = command.context_class(command, info_name=arguments.pop(0))
    while hasattr(command, "get_command"):
        name = arguments.pop(0)
        subcommand = command.get_command(context, name)
        assert subcommand is not None, f"{page}: dynamoctl has no command {name}"
        command, context = subcommand, subcommand.context_class(subcommand, info_name=name, parent=context)
    # The parser refuses unknown options; whether a named file exists is not a document's matter.
    command.make_parser(context).parse_args(arguments)
