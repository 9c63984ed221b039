"""Translates an intent into a DynamoGraphDeployment or a DynamoGraphDeploymentRequest. Pure: no cluster, no clock."""

from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

from dynamo_dynadmin.deploy import graph, request
from dynamo_dynadmin.deploy.draft import Draft
from dynamo_dynadmin.deploy.intent import DeployIntent, Mode
from dynamo_dynadmin.deploy.platform_defaults import PlatformDefaults
from dynamo_dynadmin.deploy.problems import InvalidIntent


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
