"""Generates the page of the validation rules from their registry."""

from collections.abc import Iterable, Iterator

from dynamo_shared.api.validation.check import REFUSING, WARNING
from dynamo_shared.api.validation.rule_set import BOTH, Rule, RuleSet

from tools.generate.reference.markdown import code, page, table

_INTRODUCTION = """\
This page lists every rule that admission checks, with its messages. Use it to find out what a refusal
means.

Each kind's schema has types, enums and bounds ([reference](reference/kinds.md)), and admission checks
embedded pod templates against the schema that the cluster publishes. In addition, the rules on this page
check relations between fields, between an object and its previous state, and between an object and the
cluster.

- Admission reports all errors of an object at once, in document order by concern, each as `path: message`.
  The path is in the version of the manifest.
- A rule that depends on the cluster (Grove, InferencePools, ClusterTopologies) does not apply if admission
  does not know the facts.
- Admission admits objects that are being deleted. It does not refuse an update for an error that the object
  had before.
- `{...}` stands for the variable parts. The reference operator does not have the rules marked +. Without
  such a rule, the object would fail later, when the platform creates objects, or the field would silently
  have no effect.
"""
_WARNINGS = """\
A warning does not refuse an object. Admission also warns of every use of a deprecated field. The warning
names the field, since when it is deprecated, when it will be removed and what to write instead. The API
server warns about versions and kinds that are deprecated as a whole.
"""
_WHO = """\
The DynamoGraphDeploymentScalingAdapter of a component sets the component's replicas. In the graph itself,
only these users may set another number: the service accounts of the platform's own services, and any
service account with the name `planner-serviceaccount`, in any namespace. A request without a known user may
not.
"""
_RECIPE = """\
A rule is a generator in the file of its concern in `dynamo_shared/api/validation/`. A `RuleSet` registers
it together with its messages. Its docstring is its line on this page. It reads a view (`view.py`), which
has each value next to its path in the version of the manifest, so one rule serves both versions. It skips
values that it cannot read. With one message it yields `broken(place, ...)`; with several, it yields each
place with its message.

Then add a case that breaks the rule, for each message and each version (tests require them). If the rule
refuses, add a manifest in `tests/admission/cases`; if it warns, add a case in
`tests/unit/api/validation/cases_*.py`. Also add cases at the limits of the rule, valid and invalid. Run
`make generate`.
"""
_HEAD = ("Rule", "Kinds", "Versions", "When", "Messages")
_SHORT = {
    "DynamoGraphDeployment": "DGD",
    "DynamoComponentDeployment": "DCD",
    "DynamoGraphDeploymentRequest": "DGDR",
    "DynamoGraphDeploymentScalingAdapter": "DGDSA",
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
        table(_HEAD, (_row(rule) for rule_set in WARNING for rule in rule_set.rules)),
        f"## Adding a rule\n\n{_RECIPE}",
    )


def _sections(rule_sets: Iterable[RuleSet]) -> Iterator[str]:
    """One section per title: rule sets of one concern differ in when and to what they apply."""
    by_title: dict[str, list[Rule]] = {}
    for rule_set in rule_sets:
        by_title.setdefault(rule_set.title, []).extend(rule_set.rules)
    for title, rules in by_title.items():
        yield f"## {title}\n\n{table(_HEAD, map(_row, rules))}"


def _row(rule: Rule) -> tuple[str, ...]:
    return (
        f"{rule.about}{' +' if rule.added else ''}",
        ", ".join(_SHORT.get(kind, kind) for kind in rule.kinds),
        "both" if rule.versions == BOTH else ", ".join(rule.versions),
        rule.when,
        "<br>".join(map(code, rule.says)),
    )
