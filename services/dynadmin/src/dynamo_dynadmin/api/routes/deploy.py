"""Routes that accept an intent."""

from collections.abc import Iterator

from dynamo_dynadmin.api.routes.section import IN_NAMESPACE, RouteSection, Topics, created, streamed
from dynamo_dynadmin.http.routes import JSON, YAML, Route, choice

_INTENT = {JSON: "DeployIntent", YAML: "DeployIntent"}


def deploy(topics: Topics) -> Iterator[Route]:
    """The translation and the estimate of an intent."""
    route = RouteSection("deploy", IN_NAMESPACE)
    dry_run = "`client`: only translate. `server`: let the API server check it, too."
    yield route(
        "POST /deploy",
        "deploy",
        "Deploy an intent, as a graph deployment or a deployment request.",
        topics.deploying.deploy,
        created("Dry run, or created by this request before.", {JSON: "Deployed"}),
        *("invalid", "not-found", "already-exists", "key-reused"),
        query=(choice("dryRun", dry_run, "client", "server"),),
        body=_INTENT,
        idempotent=True,
    )
    yield route(
        "POST /estimate",
        "estimate",
        "The expected performance of an intent, simulated; as server-sent events `progress`, `estimate`, `failed`, `end`, "
        "`unauthorized`, `error`.",
        topics.estimating.estimate,
        streamed("The estimate.", {JSON: "Estimate"}),
        *("invalid", "not-found"),
        body=_INTENT,
    )
