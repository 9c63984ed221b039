"""dynadmin's documents: openapi.json and docs/reference/rest.md."""

import json
from collections.abc import Iterator
from pathlib import Path

from dynamo_dynadmin.api.table import described
from dynamo_dynadmin.document import openapi
from dynamo_dynadmin.http.problems import KINDS
from dynamo_dynadmin.http.routes import Route

from tools.generate.reference.markdown import code, page, table

DOCUMENT = Path("proto") / "dynadmin.openapi.json"
PAGE = Path("docs") / "reference" / "rest.md"


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with its content."""
    text = json.dumps(openapi(), indent=1, sort_keys=False) + "\n"
    return {root / DOCUMENT: text, root / PAGE: rest_page()}


def rest_page() -> str:
    """Every operation, by tag, and every kind of problem."""
    routes = described()
    tags = list(dict.fromkeys(each.tag for each in routes))
    problems = [(code(f"urn:dynamo:problem:{kind}"), str(status), title) for kind, (status, title) in KINDS.items()]
    return page(
        "REST API",
        "the route table of dynadmin (api/routes)",
        "Operations of the [dynadmin service](../dynadmin.md). The OpenAPI document is `proto/dynadmin.openapi.json`, "
        "and a running service has it at `GET /api/v1/openapi.json`.",
        *(part for tag in tags for part in _tag(tag, [each for each in routes if each.tag == tag])),
        "## Problems",
        table(("Type", "Status", "Title"), problems),
    )


def _tag(tag: str, routes: list[Route]) -> Iterator[str]:
    yield f"## {tag}"
    yield table(("Operation", "Path", "Parameters", "What it does"), (_row(each) for each in routes))


def _row(route: Route) -> tuple[str, ...]:
    headers = ["If-Match"] * route.conditional + ["Idempotency-Key"] * route.idempotent
    parameters = ", ".join(code(each) for each in (*(each.name for each in route.query), *headers))
    return code(route.operation), code(f"{route.method} {route.path}"), parameters, route.summary
