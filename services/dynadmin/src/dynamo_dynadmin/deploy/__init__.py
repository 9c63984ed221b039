"""Translates a user's intent into the object that expresses it: pure, and the only place that does this."""

from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

from dynamo_dynadmin.deploy import graph, request
from dynamo_dynadmin.deploy.draft import Draft, PlatformDefaults
from dynamo_dynadmin.deploy.intent import DeployIntent, Mode, read_intent
from dynamo_dynadmin.deploy.problems import InvalidIntent

__all__ = ["Draft", "InvalidIntent", "PlatformDefaults", "read_intent", "translate"]


def translate(intent: DeployIntent, namespace: str, platform: PlatformDefaults) -> Draft:
    """The manifest of an intent. If it would be refused, raises InvalidIntent with every reason, at the fields of the
    intent.
    """
    is_graph = intent.mode is Mode.GRAPH
    draft = graph.draft_of(intent, namespace, platform) if is_graph else request.draft_of(intent, namespace)
    if draft.problems:
        raise InvalidIntent(draft.problems)
    verdict = validate(draft.manifest, None, Facts())
    errors = dict.fromkeys((each.path, each.message) for each in (*schema_errors(draft.manifest), *verdict.errors))
    if errors:
        raise InvalidIntent([draft.problem(path, message) for path, message in errors])
    draft.warnings += verdict.warnings
    return draft
