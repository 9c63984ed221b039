"""`dynamoctl deploy --dry-run client`: translates an intent without any server."""

import json
from typing import Any

from dynamo_dynadmin.deploy import InvalidIntent, PlatformDefaults, read_intent, translate
from dynamo_shared.api.yaml_output import to_yaml
from dynamo_shared.runtime import Settings

from dynamo_ctl.commands.deploy.deployment import remark_on
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
    answer = translated.described()
    answer["warnings"] += wrong
    if as_json:
        out(json.dumps({**answer, "tree": tree}))
        return
    remark_on(answer, remark)
    out(to_yaml(translated.manifest).rstrip())
