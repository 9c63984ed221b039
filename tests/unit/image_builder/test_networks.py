"""The first container of a build with its proxy and CAs, in its own process."""

import hashlib
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from dynamo_devcluster.certs import CertificateAuthority, KeyPair
from dynamo_image_builder.job import build_job
from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from tests.building.http_server import Handler, served
from tests.building.python_versions import UNPACKS

from .building import build, settings
from .test_fetching import CONTENT

WITHIN = 20
HOST = "store.example.org"


@contextmanager
def store(pair: KeyPair | None = None) -> Iterator[tuple[str, list[str]]]:
    """The address of a store, with TLS if it has a certificate, and the requested paths."""
    asked: list[str] = []
    context = None
    if pair is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)

    class Store(Handler):
        def reply(self) -> None:
            asked.append(self.path)
            self.answer(200, CONTENT)

    with served(Store, context) as address:
        yield address, asked


def fetched(of: ImageBuilder, folder: Path) -> str:
    """The error of the container that fetches and unpacks the archive; empty on success. Mounts are in the folder."""
    made = replace(build(of), archive_digest=f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")
    (container,) = build_job(made, "ns", of)["spec"]["template"]["spec"]["initContainers"]
    given = {each["name"]: each["value"].replace("/authorities", str(folder)) for each in container["env"]}
    bare = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    own = {"WORKSPACE": str(folder), "TERMINATION_LOG": str(folder / "log")}
    command = [sys.executable, *container["command"][1:]]
    outcome = subprocess.run(command, env={**bare, **given, **own}, timeout=WITHIN, check=False)
    return (folder / "log").read_text() if outcome.returncode else ""


@UNPACKS
def test_an_archive_is_fetched_through_the_proxy(tmp_path: Path) -> None:
    with store() as (address, asked):
        proxy = {"httpProxy": f"http://{address}", "noProxy": ".svc"}
        assert not fetched(settings(store={"endpoint": f"http://{HOST}"}, proxy=proxy), tmp_path)
    assert [each.partition("/api")[0] for each in asked] == [f"http://{HOST}"]
    assert (tmp_path / "context" / "Dockerfile").read_text() == "FROM a"


@UNPACKS
@pytest.mark.parametrize("rule", ["127.0.0.0/8", "127.0.0.1"])
def test_a_store_in_the_noproxy_list_is_contacted_directly(rule: str, tmp_path: Path) -> None:
    """As in BuildKit. Address ranges were ignored, and the proxy got requests for stores in the cluster."""
    with store() as (address, asked):
        proxy = {"httpProxy": "http://127.0.0.1:9", "noProxy": f".svc,{rule}"}
        assert not fetched(settings(store={"endpoint": f"http://{address}"}, proxy=proxy), tmp_path)
    assert [each.partition("/api")[0] for each in asked] == [""]


@UNPACKS
def test_a_store_with_a_certificate_of_the_company_ca_is_trusted(tmp_path: Path) -> None:
    with store(CertificateAuthority(tmp_path).server("store")) as (address, asked):
        of = {"endpoint": f"https://{address}"}
        assert not fetched(settings(store=of, authorities={"configMap": "company"}), tmp_path)
    assert len(asked) == 1
