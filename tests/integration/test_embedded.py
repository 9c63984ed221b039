"""Pod templates: the platform accepts what a real API server accepts, and rejects what the server cannot read.

Each part of a template with all fields is removed, replaced by values of other types, and given an unknown field. The
API server's answer to a strict dry run is the truth: 400 means that it cannot read the object, 422 that its handwritten
validation rejects it. The platform implements a part of that validation.
"""

import asyncio
import copy
import importlib.util
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.model import embedded
from dynamo_shared.api.resources import DEPLOYMENTS
from dynamo_shared.kube import Invalid, KubeClient
from dynamo_shared.kube.openapi import SchemaSource, published, schemas

from tests.examples import TIMES

HERE = Path(__file__).parent.parent / "unit" / "api" / "embedded"
LIMIT = 16

# One of each type, and values that count as empty for some fields and as errors for others.
OTHERS: tuple[Any, ...] = ("x", "", -1, True, [None], {}, None)
#: Of these for each part: one, in turns; in `make properties` all.
EACH = 1 if TIMES == 1 else len(OTHERS)

Path_ = tuple[int | str, ...]


def full() -> dict[str, Any]:
    template: dict[str, Any] = yaml.safe_load((HERE / "full_template.yaml").read_text())
    return template


def deployment(namespace: str, template: Any) -> dict[str, Any]:
    metadata = {"name": "template", "namespace": namespace}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
async def checker(kube: KubeClient) -> Checker:
    spec = {"type": "object", "properties": {"template": embedded("io.k8s.api.core.v1.PodTemplateSpec")}}
    return Checker.from_documents(
        *await schemas(kube, await published(kube)),
        resources=[DEPLOYMENTS],
        schemas=lambda _: {"type": "object", "properties": {"spec": spec}},
    )


def parts(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every part of a value, the whole first."""
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield from parts(child, (*path, step))


def changed(value: Any, path: Path_, part: Any = ..., *, delete: bool = False) -> Any:
    """A copy with one part replaced or removed; only the path to it is copied."""
    if not path:
        return part
    step, rest = path[0], path[1:]
    result = copy.copy(value)
    if rest:
        result[step] = changed(value[step], rest, part, delete=delete)
    elif delete:
        del result[step]
    else:
        result[step] = part
    return result


async def verdicts(kube: KubeClient, objects: list[dict[str, Any]], *, apply: bool = False) -> list[int]:
    """The API server's answer to a dry run of each: 200, 400 or 422."""
    gate = asyncio.Semaphore(LIMIT)

    async def one(obj: dict[str, Any]) -> int:
        async with gate:
            try:
                if apply:
                    await kube.apply(DEPLOYMENTS, obj, dry_run=True)
                else:
                    await kube.create(DEPLOYMENTS, obj, dry_run=True)
            except Invalid as error:
                return error.status
            return 200

    return await asyncio.gather(*(one(obj) for obj in objects))


def disagreements(
    checker: Checker, cases: list[tuple[str, dict[str, Any]]], observed: list[int], *, unreadable: int = 400
) -> list[str]:
    """Cases that the API server accepts and the platform rejects, or that it cannot read and the platform accepts."""
    wrong = []
    for (name, obj), status in zip(cases, observed, strict=True):
        errors = checker.errors(obj)
        if status == 200 and errors:
            wrong.append(f"{name}: accepted there, refused here: {[str(error) for error in errors]}")
        elif status == unreadable and not errors:
            wrong.append(f"{name}: unreadable there, accepted here")
    return wrong


def cases(namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    template = full()
    # Without its labels a template does not match the selector, which is a different error.
    fixed = {(), ("metadata",), ("metadata", "labels"), ("metadata", "labels", "app")}
    others = itertools.cycle(OTHERS)
    for path, part in parts(template):
        name = ".".join(map(str, path))
        if path in fixed:
            continue
        yield f"{name} missing", deployment(namespace, changed(template, path, delete=True))
        for other in itertools.islice(others, EACH):
            yield f"{name} = {other!r}", deployment(namespace, changed(template, path, other))
        if isinstance(part, dict):
            unknown = deployment(namespace, changed(template, (*path, "noSuchField"), 1))
            yield f"{name} with an unknown field", unknown


async def test_the_whole_template_is_accepted_by_both(kube: KubeClient, checker: Checker, namespace: str) -> None:
    obj = deployment(namespace, full())
    assert checker.errors(obj) == []
    assert await verdicts(kube, [obj]) == [200]
    assert await verdicts(kube, [obj], apply=True) == [200]


@pytest.mark.exhaustive
async def test_every_part_changed(kube: KubeClient, checker: Checker, namespace: str) -> None:
    tried = list(cases(namespace))
    result = await verdicts(kube, [obj for _, obj in tried])
    assert min(result.count(status) for status in (200, 400, 422)) > 500 * EACH / len(OTHERS)
    # Without a protocol, two ports that differ only in it become equal. Creation accepts that with a warning.
    assert [each for each in disagreements(checker, tried, result) if "ports.1.protocol missing" not in each] == []


# Forms of names and quantities: the platform must accept exactly those that the API server accepts in each place.
NAMES = (
    "a", "A", "a-b", "a.b", "a_b", "-a", "a-", "a" * 15, "a" * 16, "a" * 63, "a" * 64, "a--b", "1", "1a", "a b", "a/b", "é",
    "a..b", "*", "a\n", "a\t", "~", "A.B-C/d", "a" * 253, "a" * 254,
)  # fmt: skip
KEYS = (
    "a", "A_b.c", "A/b", "a.b/c", "a b", "/a", "a/", "a/b/c", "a" * 63, "a" * 64, "a" * 254 + "/a", "_a", "a_", "", "é",
    "Nvidia.com/gpu", "nvidia.com/GPU", "nvidia.com/gpu", "kubernetes.io/x", "storage", "pods", "gpu", "requests.cpu",
)  # fmt: skip
AMOUNTS = (
    "1", "0", "-0", "+5", "1.5", ".5", "5.", "1Gi", "1GiB", "1GB", "1K", "1k", "1m", "1n", "1u", "1E", "1e3", "1E3", "1e-3",
    "1e+3", "1e3.5", "0x10", "1 Gi", " 1Gi", "1Gi ", "\t1", "1e", "", "-1", "--1", "1,5", "1_000", "١", "1e30", "1Zi", "NaN",
    "1e-20", 1e22, 1.5, 0, -1, 12345678901234567890, "0.0001", "1500m", "1mm",
)  # fmt: skip
ADDRESSES = (
    "1.2.3.4", "01.2.3.4", "000000001.2.3.4", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1..2.3", "1.2.3.4/8", " 1.2.3.4", "x", "::",
    "::1", "1::2::3", "fe80::1%eth0", "::ffff:1.2.3.4", "::ffff:01.2.3.4", "::ffff:1.2.3", "1:2:3:4:5:6:7:8", "00000::1",
    "1:2:3:4:5:6:7::", "::1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:", ":1:2:3:4:5:6:7", "12345::", "G::1", "1:2:3:4:5:6:1.2.3.4",
    "1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4::", "[::1]", "ABCD::ef", "1.2.3.-4",
)  # fmt: skip
DOMAINS = ("a", "a.b", "a_b", "_a.b", "a.b.", ".", "", "..", "A", "a..b", "-a", "a-", "_", "a_", "__a", ".a", "a" * 254)
FILES = ("k", "A_b", "a/b", ".", "..", "...", "..a", "a..b", ".a", "é", "a b", "a" * 253, "a" * 254, "-")
PARAMETERS = ("net.core.somaxconn", "net/core/x", "A", "a..b", "a" * 254, "a.b-c_d.e", "-a", "net.ipv4.conf.eth0/1.x")


def main(**fields: Any) -> dict[str, Any]:
    """A pod of one container with these fields."""
    return {"containers": [{"name": "main", "image": "x", **fields}]}


def forms_of_data() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Like `forms`, for objects that pods refer to, and for the names of their data."""
    for address in ADDRESSES:
        yield f"server {address!r}", {}, {**main(), "dnsConfig": {"nameservers": [address]}}
        yield f"alias {address!r}", {}, {**main(), "hostAliases": [{"ip": address, "hostnames": ["a"]}]}
    for domain in DOMAINS:
        yield f"search {domain!r}", {}, {**main(), "dnsConfig": {"searches": [domain]}}
    for file in FILES:
        source = {"secretKeyRef": {"name": "s", "key": file}}
        yield f"key {file!r}", {}, main(env=[{"name": "A", "valueFrom": source}])
        items = [{"key": "k", "path": file}]
        yield (
            f"path {file!r}",
            {},
            {**main(), "volumes": [{"name": "v", "secret": {"secretName": "s", "items": items}}]},
        )
    for parameter in PARAMETERS:
        yield (
            f"sysctl {parameter!r}",
            {},
            {**main(), "securityContext": {"sysctls": [{"name": parameter, "value": "1"}]}},
        )


def forms() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each case: its name, the labels, and the fields of the pod."""
    yield from forms_of_data()
    for name in NAMES:
        yield f"label {name!r}", {"label": name}, main()
        yield f"nodeSelector {name!r}", {}, {**main(), "nodeSelector": {"a": name}}
        yield f"container {name!r}", {}, {"containers": [{"name": name, "image": "x"}]}
        yield f"volume {name!r}", {}, {**main(), "volumes": [{"name": name}]}
        yield f"port {name!r}", {}, main(ports=[{"containerPort": 1, "name": name}])
        yield f"probe {name!r}", {}, main(livenessProbe={"httpGet": {"port": name}})
        yield f"variable {name!r}", {}, main(env=[{"name": name}])
        for field in (
            "serviceAccountName",
            "nodeName",
            "priorityClassName",
            "runtimeClassName",
            "hostname",
            "subdomain",
        ):
            yield f"{field} {name!r}", {}, {**main(), field: name}
    for key in KEYS:
        yield f"label key {key!r}", {key: "x"}, main()
        yield f"nodeSelector key {key!r}", {}, {**main(), "nodeSelector": {key: "x"}}
        yield f"resource {key!r}", {}, main(resources={"limits": {key: 1}})
        yield f"toleration {key!r}", {}, {**main(), "tolerations": [{"key": key, "operator": "Exists"}]}
    for amount in AMOUNTS:
        yield f"memory {amount!r}", {}, main(resources={"limits": {"memory": amount}})
        yield f"size {amount!r}", {}, {**main(), "volumes": [{"name": "a", "emptyDir": {"sizeLimit": amount}}]}
        yield (
            f"more than {amount!r}", {}, main(resources={"requests": {"memory": "1Gi"}, "limits": {"memory": amount}})
        )  # fmt: skip
    for port in (-1, 0, 1, 65535, 65536):
        yield f"port {port}", {}, main(ports=[{"containerPort": port}])
        yield f"probe {port}", {}, main(livenessProbe={"tcpSocket": {"port": port}})
        yield f"user {port}", {}, main(securityContext={"runAsUser": port})
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        for setting in ("periodSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds"):
            for number in (-1, 0, 1, 2):
                yield f"{field} {setting} {number}", {}, main(**{field: {"exec": {"command": ["x"]}, setting: number}})
    for toleration in itertools.product(
        (None, "k"), (None, "Exists", "Equal"), (None, "v"), (None, "NoExecute"), (None, 5)
    ):
        fields = zip(("key", "operator", "value", "effect", "tolerationSeconds"), toleration, strict=True)
        yield f"toleration {toleration}", {}, {**main(), "tolerations": [{k: v for k, v in fields if v is not None}]}


async def test_forms_of_names_and_amounts(kube: KubeClient, checker: Checker, namespace: str) -> None:
    tried = [
        (name, deployment(namespace, {"metadata": {"labels": {"app": "x", **labels}}, "spec": pod}))
        for name, labels, pod in forms()
    ]
    result = await verdicts(kube, [obj for _, obj in tried])
    assert [
        (name, status, [str(error) for error in checker.errors(obj)])
        for (name, obj), status in zip(tried, result, strict=True)
        if (status == 200) == bool(checker.errors(obj))
    ] == []


async def test_duplicate_list_items(kube: KubeClient, checker: Checker, namespace: str) -> None:
    """The platform uses apply, which rejects duplicates that create accepts in some lists."""
    template = full()
    tried = [
        (".".join(map(str, path)), deployment(namespace, changed(template, path, [*part, part[0]])))
        for path, part in parts(template)
        if isinstance(part, list) and part and isinstance(part[0], dict)
    ]
    result = await verdicts(kube, [obj for _, obj in tried], apply=True)
    wrong = disagreements(checker, tried, result, unreadable=500)
    # The main container's variables are merged before they are applied.
    assert wrong == [f"spec.containers.{index}.env: unreadable there, accepted here" for index in (0, 1)]


async def test_the_file_for_tests_without_a_server(kube: KubeClient) -> None:
    specification = importlib.util.spec_from_file_location("published", HERE / "published.py")
    assert specification is not None
    assert specification.loader is not None
    file = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(file)
    assert file.FILE.read_text() == file.text_of(await schemas(kube, await published(kube))), (
        "write it again: see published.py"
    )


async def test_a_checker_follows_a_real_server(kube: KubeClient) -> None:
    source = SchemaSource(kube)
    checker = await source.checker()
    assert await source.checker() is checker
    main = {"name": "main", "resources": {"limts": {}}}
    component = {"name": "a", "podTemplate": {"spec": {"containers": [main]}}}
    graph = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "spec": {"components": [component]}}
    assert [str(error) for error in checker.errors(graph)] == [
        "spec.components[0].podTemplate.spec.containers[0].resources.limts: no such field; did you mean limits?"
    ]
