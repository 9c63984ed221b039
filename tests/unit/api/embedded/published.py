"""The API server's published schemas of the types that our kinds embed: `published.json`, for tests without a server.

python tests/unit/api/embedded/published.py KUBECONFIG

writes it again from a cluster; an integration test reports when that is due.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import dynamo_ctl
from dynamo_shared.kube import KubeClient, openapi

HERE = Path(__file__).parent
FILE = Path(dynamo_ctl.__file__).parent / "kubernetes_types.json"
FULL_TEMPLATE = HERE / "full_template.yaml"


def document() -> dict[str, Any]:
    """One OpenAPI document with all of these types."""
    parsed: dict[str, Any] = json.loads(FILE.read_text())
    return parsed


def text_of(documents: list[dict[str, Any]]) -> str:
    """The file's text for the schemas that an API server publishes."""
    schemas = {name: schema for each in reversed(documents) for name, schema in each["components"]["schemas"].items()}
    return json.dumps({"components": {"schemas": schemas}}, indent=1, sort_keys=True) + "\n"


async def _main(kubeconfig: str) -> None:
    async with await KubeClient.open(kubeconfig=Path(kubeconfig)) as client:
        FILE.write_text(text_of(await openapi.schemas(client, await openapi.published(client))))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
