"""The API's documents: the OpenAPI document and its page, generated from the route table."""

from functools import cache
from typing import Any

from dynamo_dynadmin.api import deploy_models, models, replay_models
from dynamo_dynadmin.api.table import described
from dynamo_dynadmin.deploy.intent import DeployIntent
from dynamo_dynadmin.http import openapi as builder

#: Version of the API, independent of the package: it changes with paths, fields or meanings.
API_VERSION = "1.0.0"


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document."""
    named = {**vars(models), **vars(deploy_models), **vars(replay_models), DeployIntent.__name__: DeployIntent}
    return builder.document(described(), named, API_VERSION)
