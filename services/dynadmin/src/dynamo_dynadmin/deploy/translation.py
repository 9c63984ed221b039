"""An intent becomes a DynamoGraphDeployment or a DynamoGraphDeploymentRequest. Pure: no cluster, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

from dynamo_dynadmin.deploy import graph, request
from dynamo_dynadmin.deploy.draft import Defaulted, Draft
from dynamo_dynadmin.deploy.intent import DeployIntent, Mode
from dynamo_dynadmin.deploy.platform_defaults import PlatformDefaults
from dynamo_dynadmin.deploy.problems import FieldProblem, InvalidIntent


@dataclass(frozen=True, slots=True)
class Translation:
    """What an intent becomes."""

    manifest: KubeObject
    defaulted: tuple[Defaulted, ...]
    """fields that the intent does not name"""
    unexpressed: tuple[FieldProblem, ...]
    """fields of the intent that the manifest has no place for: reported, never dropped"""
    warnings: tuple[str, ...]
    origins: Mapping[tuple[str, ...], str]
    """by path of the manifest: pointer into the intent"""

    def draft(self) -> Draft:
        """The manifest with the origins of its fields."""
        return Draft(self.manifest, dict(self.origins))

    def problems(self, refused: Iterable[FieldError]) -> list[FieldProblem]:
        """Refused fields of the manifest as problems of the intent."""
        draft = self.draft()
        return [FieldProblem(draft.pointer_of(each.path), each.message, each.path) for each in refused]


def translate(
    intent: DeployIntent, namespace: str, platform: PlatformDefaults, facts: Facts | None = None
) -> Translation:
    """The manifest of an intent. InvalidIntent with every reason where it would be refused, at the fields of the intent."""
    draft = (graph if intent.mode is Mode.GRAPH else request).draft_of(intent, namespace, platform)
    translation = Translation(
        manifest=draft.manifest,
        defaulted=tuple(draft.defaulted),
        unexpressed=tuple(draft.unexpressed),
        warnings=tuple(draft.warnings),
        origins=draft.origins,
    )
    if draft.problems:
        raise InvalidIntent(draft.problems)
    verdict = validate(draft.manifest, None, facts or Facts())
    errors = {(each.path, each.message): each for each in (*schema_errors(draft.manifest), *verdict.errors)}
    if errors:
        raise InvalidIntent(translation.problems(errors.values()))
    return Translation(
        translation.manifest,
        translation.defaulted,
        translation.unexpressed,
        (*translation.warnings, *verdict.warnings),
        translation.origins,
    )
