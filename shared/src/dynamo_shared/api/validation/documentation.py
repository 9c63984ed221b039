"""The rules as a page for people, printed from what they are registered with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo_shared.api.reference.markdown import code, page, table
from dynamo_shared.api.validation.book import BOTH, Book, Rule
from dynamo_shared.api.validation.check import REFUSING, WARNING

_INTRODUCTION = """\
Rules between fields, between an object and what it was before, and about the cluster, on top of what each kind's schema
demands (types, enums, bounds: [reference](reference/kinds.md)) and of what the cluster itself demands of embedded pod templates.

- All errors of an object are told at once, in document order by concern, each as `path: message`. The path is the one
  that the author wrote, in the version that it is written in.
- A rule that depends on the cluster (Grove, InferencePools, ClusterTopologies) is left out where nobody can know.
- Objects that are being deleted are let through. An update is not refused for what was wrong before it already.
- `{...}` stands for what differs. Rules marked + are not the reference operator's: what they refuse would fail later, when
  objects are made, or would be passed over in silence.
"""
_WARNINGS = """\
What is accepted, and said all the same. Every use of a deprecated field is warned of, too: the field, since when,
when it goes and what to write instead. Versions and kinds that are deprecated as a whole are warned of by the API server.
"""
_WHO = """\
Replicas of a component with a scaling adapter are changed by its DynamoGraphDeploymentScalingAdapter. In the graph itself
only these may: the service accounts of the platform's own services, and any service account with the name
`planner-serviceaccount`, in any namespace. A request whose user is not known may not.
"""
_RECIPE = """\
A rule is a generator in the file of its concern in `dynamo_shared/api/validation/`, registered in a `Book` together with
its messages; its docstring is its line here. It reads a view (`view.py`), which has each value beside its place in the version
written, so that it is written once. It skips what it cannot read. Then a case for each version and message in
`tests/unit/api/validation/cases_*.py` (a test asks for them), and `make generate`.
"""
_HEAD = ("Rule", "Kinds", "Versions", "When", "Messages")
_SHORT = {
    "DynamoGraphDeployment": "DGD",
    "DynamoComponentDeployment": "DCD",
    "DynamoGraphDeploymentRequest": "DGDR",
}


def text() -> str:
    """The page docs/validation.md."""
    return page(
        "Validation rules",
        "`dynamo_shared.api.validation`",
        _INTRODUCTION,
        *_sections(REFUSING),
        f"## Who may change what\n\n{_WHO}",
        f"## Warnings\n\n{_WARNINGS}",
        table(_HEAD, (_row(rule) for book in WARNING for rule in book.rules)),
        f"## Adding a rule\n\n{_RECIPE}",
    )


def _sections(books: Iterable[Book]) -> Iterator[str]:
    """One section a title: books of one concern differ in when and to what they apply."""
    by_title: dict[str, list[Rule]] = {}
    for book in books:
        by_title.setdefault(book.title, []).extend(book.rules)
    for title, rules in by_title.items():
        yield f"## {title}\n\n{table(_HEAD, map(_row, rules))}"


def _row(rule: Rule) -> tuple[str, ...]:
    return (
        f"{rule.about}{' +' if rule.ours else ''}",
        ", ".join(_SHORT.get(kind, kind) for kind in rule.kinds),
        "both" if rule.versions == BOTH else ", ".join(rule.versions),
        rule.when,
        "<br>".join(map(code, rule.says)),
    )
