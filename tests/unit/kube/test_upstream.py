"""The library's configuration code is imported without its client."""

import subprocess
import sys

ALONE_AND_REAL_AFTERWARDS = """
import sys
from dynamo_shared.kube import upstream
loaded = upstream.load()
assert loaded.kube_config.KubeConfigLoader and loaded.incluster_config.InClusterConfigLoader
left = [name for name in sys.modules if name.startswith("kubernetes_asyncio")]
assert left == [], left
assert upstream.load() is loaded
from kubernetes_asyncio import client, config
assert client.CoreV1Api and config.load_kube_config
assert client.Configuration is not object
"""


def run(code: str) -> None:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def test_the_client_is_not_imported_and_the_real_package_can_be_imported_afterwards() -> None:
    run(ALONE_AND_REAL_AFTERWARDS)


def test_an_already_imported_package_is_used_unchanged() -> None:
    run(
        "import kubernetes_asyncio.config as c\nfrom dynamo_shared.kube import upstream\n"
        "assert upstream.load().kube_config.load_kube_config is c.load_kube_config"
    )
