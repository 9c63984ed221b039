"""Text that a tenant can write is read in one place: only the files below parse YAML, JSON or times by themselves."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Ways around the readers of `dynamo_shared.api.untrusted`.
OWN_PARSING = re.compile(
    r"yaml\.(?:safe_|full_|unsafe_)?load|json\.loads\(|msgspec\.(?:json|yaml)\.(?:decode\(|Decoder\()|\.fromisoformat\("
)
#: Files that may, and whose text it is. What is only here to be sent, or comes from the platform itself, needs no bounds.
ALLOWED = {
    # The readers, and what validates the format of a field.
    "shared/src/dynamo_shared/api/untrusted/": "the readers",
    "shared/src/dynamo_shared/api/model.py": "the date of a matched pattern",
    "shared/src/dynamo_shared/api/embedded/scalars.py": "19 characters of a matched pattern",
    "shared/src/dynamo_shared/api/conversion/envelope.py": "bounded there, since it keeps what JSON cannot say",
    "shared/src/dynamo_shared/api/conversion/released.py": "paths that are quoted in code",
    # The API server, NATS and the platform's own processes answer these; deep nesting is cut by kube/depth.py.
    "shared/src/dynamo_shared/kube/": "the API server's answers",
    "shared/src/dynamo_shared/bus/": "messages of the platform",
    "shared/src/dynamo_shared/state/": "messages of the platform",
    "shared/src/dynamo_shared/wire/": "messages of the platform",
    "shared/src/dynamo_shared/leases/": "the platform's etcd",
    "shared/src/dynamo_shared/api/embedded/documents.py": "the API server's OpenAPI documents",
    "services/admission/src/dynamo_admission/": "reviews of the API server, of bounded size",
    "services/image-builder/src/dynamo_image_builder/fetch.py": "answers of a registry of the platform, of bounded size",
    "services/model-discovery/src/dynamo_model_discovery/workers/": "records of bounded size, read by type",
    "services/pod-builder/src/dynamo_pod_builder/topology_schema.py": "schemas that the API server publishes, of bounded size",
    "services/planner/src/dynamo_planner/inputs/prometheus/client.py": "answers of bounded size, read by type",
    # Files of the installation, and of the user who runs a command.
    "shared/src/dynamo_shared/runtime/settings/": "the platform's configuration",
    "shared/src/dynamo_shared/api/crds/": "files of the package",
    "services/profiler/src/dynamo_profiler/profiling/": "files of the installation, and worker processes",
    "services/planner/src/dynamo_planner/replay/": "files of the user who runs a command",
    "services/profiler/src/dynamo_profiler/requests/thorough/relay.py": "runs in the tenant's own pod",
    "services/devcluster/": "files of the user who runs a command",
    "services/ctl/": "files of the user who runs a command",
    "services/dynadmin/": "requests of bounded size",
}


def test_only_the_readers_parse_what_tenants_write() -> None:
    files = [*ROOT.glob("shared/src/**/*.py"), *ROOT.glob("services/*/src/**/*.py")]
    assert files
    results = {str(file.relative_to(ROOT)) for file in files if OWN_PARSING.search(file.read_text(encoding="utf-8"))}
    assert sorted(each for each in results if not each.startswith(tuple(ALLOWED))) == []
