"""Table tests: each row has the initial objects, and the outcome as one line of text."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject

_SIGNS = {"True": "+", "False": "-", "Unknown": "?"}
_STATUSES = {sign: status for status, sign in _SIGNS.items()}


def rows(names: str, given: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Parametrizes these names, separated by commas; keys are the ids of rows."""
    return pytest.mark.parametrize(names, given.values(), ids=given)


def table(worlds: Mapping[str, tuple[Callable[[], Any], object]]) -> pytest.MarkDecorator:
    """Parametrizes `given`, which creates the objects, and `outcome`; keys are the ids of rows."""
    return rows("given, outcome", worlds)


def table_of(text: str) -> dict[str, tuple[str, ...]]:
    """Rows `name | cell | cell` of a text, by name; a row goes on in the lines that begin with blanks."""
    rows = (re.split(r"\s+\|\s+", row) for row in re.split(r"\n(?! )", text.strip()))
    return {name: tuple(cells) for name, *cells in rows}


def conditions(said: str) -> list[KubeObject]:
    """Conditions of a stored status, from words in the format of `outcome_of`: `Valid+Checked Ready-Pending`."""
    about = {"message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return [
        {"type": type_, "status": _STATUSES[sign], "reason": reason, **about}
        for type_, sign, reason in re.findall(r"(\w+)([+?-])(\w+)", said)
    ]


def outcome_of(before: KubeObject, after: KubeObject, announced: Any, kube: Any) -> str:
    """Changes of a status: its phase, and changed conditions; reasons of Events; writes to the API server in memory."""
    known, now = ([_word(each) for each in status.get("conditions", ())] for status in (before, after))
    phase = " ".join((after.get("phase", ""), *(each for each in now if each not in known)))
    reasons = " ".join(line.split()[1] for line in announced.lines)
    return "; ".join(filter(None, (phase, reasons, ", ".join(kube.writes))))


def _word(condition: KubeObject) -> str:
    return f"{condition['type']}{_SIGNS[condition['status']]}{condition['reason']}"
