"""`POST /deploy`: an intent, translated, checked by a dry run, or deployed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from dynamo_shared.api.objects import KubeObject, without_managed_fields
from dynamo_shared.api.yaml_output import to_yaml
from dynamo_shared.kube import Forbidden, Invalid, KubeError

from dynamo_dynadmin.api import fit
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.api.kinds import DEPLOYMENTS, REQUESTS
from dynamo_dynadmin.api.object_writer import ObjectWriter, location
from dynamo_dynadmin.deploy import Draft, PlatformDefaults, read_intent, translate
from dynamo_dynadmin.deploy.intent import DeployIntent, Mode
from dynamo_dynadmin.deploy.problems import pointer
from dynamo_dynadmin.http.call import Call, etag
from dynamo_dynadmin.http.problems import ProblemError, of_kube

#: Renders a manifest: returns the tree of its objects, and its errors. Passed by the process that composes the
#: services.
Planned = Callable[[KubeObject], tuple[Mapping[str, Any] | None, Sequence[str]]]


@dataclass(eq=False)
class IntentDeployer:
    """Turns intents into objects."""

    writing: ObjectWriter
    cluster: Cluster
    platform: PlatformDefaults
    planned: Planned | None

    async def deploy(self, call: Call) -> web.StreamResponse:
        """Translate an intent. With `dryRun=server` the API server validates it; without `dryRun` it is created."""
        sent = await call.body()
        intent, made, answer = await call.apart(lambda: self._made(sent, call.namespace))
        kind = DEPLOYMENTS if intent.mode is Mode.GRAPH else REQUESTS
        dry_run = call.text("dryRun")
        answer["dryRun"] = dry_run or None
        if dry_run == "client":
            return call.answer(answer)
        try:
            stored, is_new = await self.writing.ensure(call, kind, made.manifest, sent, dry_run=dry_run == "server")
        except (Invalid, Forbidden) as error:
            raise _problem_at_form(made, error) from error
        answer["object"] = without_managed_fields(stored)
        answer["serverDefaulted"] = sorted(_added(made.manifest, stored))
        answer["warnings"] = [*answer["warnings"], *call.warnings]
        if kind is DEPLOYMENTS:
            answer["gpus"] = await self._fit(call, stored)
        headers = {"Location": location(kind, stored), "ETag": etag(stored)}
        if not is_new:
            return call.answer(answer, 200, {**headers, "Idempotency-Replayed": "true"})
        if dry_run == "server":
            return call.answer(answer)
        return call.answer(answer, 201, headers)

    def _made(self, sent: Any, namespace: str) -> tuple[DeployIntent, Draft, dict[str, Any]]:
        intent = read_intent(sent)
        made = translate(intent, namespace, self.platform)
        tree, wrong = self.planned(made.manifest) if self.planned is not None else (None, ())
        described = made.described()
        described["warnings"] += wrong
        answer = {
            **described,
            "yaml": to_yaml(made.manifest),
            "origins": {pointer(path): source for path, source in made.origins.items()},
            "tree": tree,
            "gpus": None,
            "object": None,
        }
        return intent, made, answer

    async def _fit(self, call: Call, graph: KubeObject) -> dict[str, Any] | None:
        try:
            nodes, exact = await self.cluster.gpu_nodes(call)
        except KubeError:
            return None
        if nodes is None:
            return None
        return fit.fit(fit.demands_of(graph, await self.cluster.claims(call)), nodes, exact=exact)


def _problem_at_form(made: Draft, error: KubeError) -> ProblemError:
    """A refusal of the manifest, mapped to the fields of the intent."""
    problem = of_kube(error)
    errors = [made.problem(each.source, each.detail) for each in problem.errors]
    return ProblemError(problem.kind, problem.detail, errors=errors, headers=problem.headers, **problem.extensions)


def _added(sent: Any, stored: Any, path: str = "") -> list[str]:
    """Paths that the API server or admission added."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        added: list[str] = []
        for key, value in stored.items():
            if not path and key in ("metadata", "status"):
                continue
            place = f"{path}.{key}" if path else key
            added += _added(sent[key], value, place) if key in sent else [place]
        return added
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        return [
            each
            for index, (mine, theirs) in enumerate(zip(sent, stored, strict=True))
            for each in _added(mine, theirs, f"{path}[{index}]")
        ]
    return []
