"""What a real node is made of, as far as it can be checked without one."""

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.e2e import configuration, confinement, machine
from tools.images import archive
from tools.images.archive import Image


def files(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {each.name: (tar.extractfile(each) or pytest.fail(each.name)).read() for each in tar if each.isfile()}


def root_of(folder: Path) -> Path:
    for name in ("bin/run", "proc/1/maps", "var/cache/apt/big.deb", "tmp/rest"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "bin/alias").symlink_to("run")
    return folder


def test_container_engines_can_load_an_archive(tmp_path: Path) -> None:
    target = tmp_path / "image.tar"
    archive.write(Image("example.local/x:1", ("/bin/run",), {"A": "b"}, "65535"), root_of(tmp_path / "root"), target)
    content = files(target)
    (manifest,) = json.loads(content["manifest.json"])
    assert manifest["RepoTags"] == ["example.local/x:1"]
    (layer,) = manifest["Layers"]
    config = json.loads(content[manifest["Config"]])
    assert manifest["Config"] == f"{hashlib.sha256(content[manifest['Config']]).hexdigest()}.json"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(content[layer]).hexdigest()}"]
    assert config["config"] == {"Entrypoint": ["/bin/run"], "Cmd": [], "Env": ["A=b"], "User": "65535"}
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".layer")] == []


def test_a_layer_excludes_files_of_the_machine_and_is_owned_by_root(tmp_path: Path) -> None:
    archive.write(Image("x"), root_of(tmp_path / "root"), tmp_path / "image.tar")
    (layer,) = (name for name in files(tmp_path / "image.tar") if name.endswith("layer.tar"))
    (tmp_path / "layer").write_bytes(files(tmp_path / "image.tar")[layer])
    with tarfile.open(tmp_path / "layer") as tar:
        members = {each.name: each for each in tar}
    assert {"bin/run", "bin/alias", "proc", "tmp", "dev"} <= members.keys()
    assert not {"proc/1/maps", "tmp/rest", "var/cache/apt/big.deb"} & members.keys()
    assert members["tmp"].mode == 0o1777
    assert members["bin/alias"].linkname == "run"
    assert {(each.uid, each.gid, each.mtime) for each in members.values()} == {(0, 0, 0)}


def test_equal_files_give_the_same_image(tmp_path: Path) -> None:
    for name in ("a", "b"):
        archive.write(Image("x"), root_of(tmp_path / name / "root"), tmp_path / f"{name}.tar")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_configurations_are_well_formed(tmp_path: Path) -> None:
    layout = configuration.Layout(tmp_path)
    assert yaml.safe_load(configuration.kubelet(layout, tmp_path))["kind"] == "KubeletConfiguration"
    assert yaml.safe_load(configuration.kube_proxy(tmp_path))["mode"] == "iptables"
    (plugin,) = json.loads(configuration.network(layout))["plugins"]
    assert plugin["type"] == "ptp"
    assert f'sandbox_image = "{configuration.PAUSE_IMAGE}"' in configuration.containerd(layout)


@pytest.mark.parametrize("of", configuration.NETWORKS.values())
def test_the_nodes_network_is_isolated(of: configuration.Network) -> None:
    routes = [each for each in configuration.addresses(of) if "route" in each]
    assert [each[each.index("add") + 1] for each in routes] == [of.services]
    assert all("lo" in each for each in routes)


def test_leftovers_of_a_killed_run_are_removed_and_a_running_one_is_kept(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, used = (tmp_path / f"{confinement.FOLDER_PREFIX}{pid}" for pid in (ended.pid, os.getpid()))
    for folder in (left, used, tmp_path / f"{confinement.FOLDER_PREFIX}other"):
        (folder / "kubelet").mkdir(parents=True)
    confinement.clear_leftovers(tmp_path)
    assert not left.exists()
    assert used.exists()
    assert (tmp_path / f"{confinement.FOLDER_PREFIX}other").exists()


def test_a_user_other_than_root_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(machine.UnsuitableMachineError, match="sudo make e2e-runtime"):
        machine.check()


def test_a_machine_without_apt_reports_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(machine.UnsuitableMachineError, match=r"no apt-get .* containerd 1\.6 or 1\.7"):
        machine.install_packages()


@pytest.mark.skipif(not Path("/usr/bin/dpkg").exists(), reason="dpkg compares versions; this is not Debian")
@pytest.mark.parametrize(
    ("installed", "suitable"),
    [("", False), ("1.5.9", False), ("1.6.20~ds1-1+deb12u3", True), ("1:1.7.1", True), ("2.0.1-1", False)],
)
def test_versions_of_packages_are_compared(installed: str, suitable: bool) -> None:
    assert machine.suitable(machine.Package("containerd", "1.6", "2.0"), installed) is suitable
