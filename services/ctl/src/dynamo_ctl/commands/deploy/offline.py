"""`dynamoctl deploy --dry-run client`: translates an intent without any server."""

import json
from typing import Any

from dynamo_dynadmin.deploy import InvalidIntent, PlatformDefaults, read_intent, translate
from dynamo_shared.api.yaml_output import to_yaml
from dynamo_shared.runtime import Settings

from dynamo_ctl.errors import CtlError
from dynamo_ctl.output import Print
from dynamo_ctl.planned import planned
from dynamo_ctl.remote import field_error


def deploy(
    sent: dict[str, Any], namespace: str, settings: Settings, out: Print, *, remark: Print, as_json: bool
) -> None:
    """Translate without any server, and print only the manifest. `remark` gets warnings. Raises CtlError."""
    platform = settings.platform
    defaults = PlatformDefaults(platform.planner.image_repository, platform.version, platform.planner.model_secret)
    try:
        translated = translate(read_intent(sent), namespace, defaults)
    except InvalidIntent as error:
        raise CtlError("\n".join(field_error(each.pointer, each.detail) for each in error.problems)) from error
    tree, wrong = planned(translated.manifest, settings)
    if as_json:
        answer = {
            "manifest": translated.manifest,
            "defaulted": [{"path": each.path, "value": each.value, "why": each.why} for each in translated.defaulted],
            "unexpressed": [{"pointer": each.pointer, "detail": each.detail} for each in translated.unexpressed],
            "warnings": [*translated.warnings, *wrong],
            "tree": tree,
        }
        out(json.dumps(answer))
        return
    for each in translated.unexpressed:
        remark(f"not expressed: {field_error(each.pointer, each.detail)}")
    for warning in (*translated.warnings, *wrong):
        remark(f"warning: {warning}")
    out(to_yaml(translated.manifest).rstrip())
