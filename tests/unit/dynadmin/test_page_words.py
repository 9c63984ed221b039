"""The page has words for conditions and reasons that services give, and for no others."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORDS = (ROOT / "services/dynadmin/page/src/logic/advice.ts").read_text()
#: Kubernetes' own, which services repeat as kubelets and controllers give them.
OF_KUBERNETES = {"CreateContainerConfigError"}


def keys(table: str) -> list[str]:
    body = re.search(rf"const {table}[^\n]*= {{\n(.*?)\n}};", WORDS, re.DOTALL)
    assert body is not None
    return re.findall(r"^  (\w+): ", body[1], re.MULTILINE)


@cache
def said() -> frozenset[str]:
    """Every word in quotation marks in the sources of the services."""
    sources = [*ROOT.glob("services/*/src/**/*.py"), *ROOT.glob("shared/src/**/*.py")]
    return frozenset(word for source in sources for word in re.findall(r"\"(\w+)\"", source.read_text()))


@pytest.mark.parametrize("table", ["ADVICE", "SENTENCES"])
def test_words_are_of_what_services_report(table: str) -> None:
    assert set(keys(table)) - said() - OF_KUBERNETES == set()
    assert len(keys(table)) > 10
