"""Certificates, ports, locks and nodes: the written files, and what a second start reuses."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID
from dynamo_devcluster import LocalClusterError, NodeShape
from dynamo_devcluster.certs import CertificateAuthority, signing_key
from dynamo_devcluster.components import Files, api_server
from dynamo_devcluster.locks import exclusive
from dynamo_devcluster.nodes import node_manifest
from dynamo_devcluster.options import ControlPlaneOptions
from dynamo_devcluster.ports import PortFile, free_port


def test_a_client_certificate_has_user_and_groups(tmp_path: Path) -> None:
    pair = CertificateAuthority(tmp_path).client("a", "alice", ("ops", "dev"))
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    values = {
        oid: [a.value for a in certificate.subject.get_attributes_for_oid(oid)]
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    }
    assert values == {NameOID.COMMON_NAME: ["alice"], NameOID.ORGANIZATION_NAME: ["ops", "dev"]}
    assert pair.key.stat().st_mode & 0o777 == 0o600


def test_a_new_ca_replaces_its_certificates(tmp_path: Path) -> None:
    first = CertificateAuthority(tmp_path).server("s").certificate.read_bytes()
    (tmp_path / "ca.key").unlink()
    assert CertificateAuthority(tmp_path).server("s").certificate.read_bytes() != first


def test_ports_are_reused_until_taken(tmp_path: Path) -> None:
    ports = PortFile(tmp_path / "ports.json")
    port = ports.port("api")
    ports.release()
    again = PortFile(tmp_path / "ports.json")
    assert again.port("api") == port
    again.release()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        assert PortFile(tmp_path / "ports.json").port("api") != port


def test_only_ports_that_the_file_holds_are_released(tmp_path: Path) -> None:
    ports = PortFile(tmp_path / "ports.json")
    port = ports.port("api")
    ports.release()
    unused = PortFile(tmp_path / "ports.json")
    (tmp_path / "other.json").write_text(json.dumps({"api": port}))
    other = PortFile(tmp_path / "other.json")
    assert other.port("api") == port
    unused.release()
    assert PortFile(tmp_path / "ports.json").port("api") != port
    other.release()


def test_ports_are_not_given_twice() -> None:
    assert len({free_port() for _ in range(200)}) == 200


def test_a_port_of_another_process_is_not_given_again(tmp_path: Path) -> None:
    """Also before its server listens, and while the server is stopped, until the process ends."""
    script = (
        "import sys; from dynamo_devcluster.ports import free_port; print(free_port(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        port = int(other.stdout.readline())
        remembered = tmp_path / "ports.json"
        remembered.write_text(json.dumps({"api": port}))
        assert PortFile(remembered).port("api") != port
        other.stdin.close()
        other.wait()
    remembered.write_text(json.dumps({"api": port}))
    assert PortFile(remembered).port("api") == port


def test_a_directory_has_one_user(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path),
        pytest.raises(LocalClusterError, match="in use by another local cluster"),
        exclusive(tmp_path),
    ):
        pass
    with exclusive(tmp_path):
        pass


def test_nodes_have_the_labels_of_the_gpu_operator() -> None:
    node = node_manifest(4, NodeShape(labels={"pool": "a"}), "v1.35.4")
    labels = node["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.count"] == "8"
    assert labels["topology.kubernetes.io/zone"] == "local-b"
    assert labels["pool"] == "a"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert "spec" not in node, "no taints"


def test_nodes_without_gpus_have_no_gpu_labels() -> None:
    node = node_manifest(0, NodeShape(gpus=0), "v1.35.4")
    assert "nvidia" not in json.dumps(node)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    pair = CertificateAuthority(tmp_path).pair
    return Files(pair, pair, pair, tmp_path, tmp_path, tmp_path)


def test_without_controller_manager_pods_need_no_service_account(files: Files) -> None:
    bare = ControlPlaneOptions(controller_manager=False, kwok_nodes=0, api_server_arguments=("--v=4",))
    arguments = api_server(bare, files, 1, "http://127.0.0.1:2")
    assert "--disable-admission-plugins=ServiceAccount" in arguments
    assert arguments[-1] == "--v=4"
    assert not any("admission" in a for a in api_server(ControlPlaneOptions(kwok_nodes=0), files, 1, ""))


def test_pods_reach_the_api_server_only_if_requested(files: Files) -> None:
    alone = api_server(ControlPlaneOptions(), files, 1, "http://e")
    assert "--bind-address=127.0.0.1" in alone
    assert not [argument for argument in alone if "kubelet" in argument]
    reached = api_server(ControlPlaneOptions(node_address="192.0.2.1"), files, 1, "http://e")
    assert {"--advertise-address=192.0.2.1", "--kubelet-preferred-address-types=InternalIP"} <= set(reached)
    assert "--endpoint-reconciler-type=none" not in reached


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


@pytest.mark.parametrize("size", [0, 100])
@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "etcd.crt", "etcd.key"])
def test_an_incomplete_file_is_written_again(tmp_path: Path, name: str, size: int) -> None:
    CertificateAuthority(tmp_path).server("etcd")
    cut(tmp_path / name, size)
    authority = CertificateAuthority(tmp_path)
    pair = authority.server("etcd")
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate.read_bytes()))
    key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    assert certificate.public_key() == key.public_key()


def test_complete_files_are_reused(tmp_path: Path) -> None:
    CertificateAuthority(tmp_path).server("etcd")
    signing_key(tmp_path)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    CertificateAuthority(tmp_path).server("etcd")
    signing_key(tmp_path)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_key_without_its_certificate_is_replaced(tmp_path: Path) -> None:
    """The key is written before the certificate."""
    pair = CertificateAuthority(tmp_path).server("etcd")
    key = CertificateAuthority(tmp_path).server("other").key
    pair.key.write_bytes(key.read_bytes())
    certificate = x509.load_pem_x509_certificate(CertificateAuthority(tmp_path).server("etcd").certificate.read_bytes())
    stored = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    assert certificate.public_key() == stored.public_key()


@pytest.mark.parametrize("name", ["service-account.key", "service-account.pub"])
def test_the_token_key_is_complete(tmp_path: Path, name: str) -> None:
    signing_key(tmp_path)
    cut(tmp_path / name, 50)
    private, public = signing_key(tmp_path)
    key = serialization.load_pem_private_key(private.read_bytes(), password=None)
    assert serialization.load_pem_public_key(public.read_bytes()) == key.public_key()
