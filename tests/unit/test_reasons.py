"""Every reason of a Kubernetes Event stands in the `events.py` of its service, and docs/reference/reasons.md lists it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dynamo_shared.runtime.facts import EventReason

from tools.generate import services

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "shared/src/dynamo_shared/runtime/facts.py"
SOURCES = [path for folder in ("shared", "services") for path in sorted((ROOT / folder).glob("**/src/**/*.py"))]
SERVICES = services.service_modules("events")
DECLARED = [(service, reason) for service, module in SERVICES.items() for reason in services.reasons_of(module)]
NAMES = [reason.name for _, reason in DECLARED if reason.name]


def inline_reasons(source: str, *, declares: bool) -> Iterator[str]:
    """What a module does that only declarations may do: `declares` says whether it is a service's `events.py`."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        given = {each.arg for each in call.keywords}
        match getattr(call.func, "id", "") or getattr(call.func, "attr", ""):
            case "EventReason" if not declares:
                yield "declares a reason"
            case "record" if "reason" in given:
                yield "records an Event without an announcer"
            case "Fact" if call.args or given & {"reason", "type", "action", None}:
                yield "creates a fact whose reason is not declared"
            case "named" if any(isinstance(each, ast.Constant | ast.JoinedStr) for each in call.args):
                yield "names a reason inline"


def test_no_reason_stands_elsewhere() -> None:
    declaring = {Path(str(module.__file__)).resolve() for module in SERVICES.values()}
    assert len(SOURCES) > 500
    inline = {
        str(path.relative_to(ROOT)): reasons
        for path in SOURCES
        if path != FACTS and (reasons := list(inline_reasons(path.read_text(), declares=path in declaring)))
    }
    assert inline == {}


@pytest.mark.parametrize(
    "source",
    [
        "recorder.record(obj, type_='Normal', reason='Ready', message='', action='')",
        "announcer.announce(obj, EventReason('Ready', 'It serves.')('it serves'))",
        "announcer.announce(obj, Fact('Ready'))",
        "announcer.announce(obj, Fact(reason='Ready'))",
        "announcer.announce(obj, events.NOT_READY.named('Stuck')('it is stuck'))",
        "announcer.announce(obj, events.NOT_READY.named(f'{word}Stuck')('it is stuck'))",
    ],
)
def test_an_inline_reason_is_detected(source: str) -> None:
    assert len(list(inline_reasons(source, declares=False))) == 1


def test_reasons_are_listed() -> None:
    assert {"Ready", "Scaled", "Planned", "ImageReady", "ObjectTooLarge", "EndpointsReady"} <= set(NAMES)
    listed = re.findall(r"^\| `(\w+)` \|", services.reasons_page(), re.MULTILINE)
    assert listed == NAMES
    assert services.reasons_page().count("\n| *that of ") == len(DECLARED) - len(NAMES)


@pytest.mark.parametrize(("service", "reason"), DECLARED, ids=lambda each: getattr(each, "name", each))
def test_a_reason_is_well_formed(service: str, reason: object) -> None:
    assert service in SERVICES
    assert isinstance(reason, EventReason)
    assert re.fullmatch(r"([A-Z][A-Za-z0-9]*)?", reason.name), "CamelCase, or empty for that of a condition"
    assert re.fullmatch(r"[A-Z][A-Za-z]+", reason.action)
    assert reason.when.endswith(".")
    assert bool(reason.name) != bool(reason.condition), "a name of its own, or that of a condition"


@pytest.mark.parametrize("service", SERVICES)
def test_every_reason_is_used(service: str) -> None:
    module = SERVICES[service]
    package = Path(str(module.__file__)).parent
    text = "\n".join(path.read_text() for path in sorted(package.rglob("*.py")))
    names = [name for name, value in vars(module).items() if isinstance(value, EventReason)]
    assert [name for name in names if len(re.findall(rf"\b{name}\b", text)) < 2] == []
