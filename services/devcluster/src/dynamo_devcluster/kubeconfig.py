"""Self-contained kubeconfig files, with all certificates embedded."""

import base64
import json
from pathlib import Path

from .certs import KeyPair


def write_kubeconfig(path: Path, server: str, ca: Path, client: KeyPair, user: str) -> Path:
    """Write a kubeconfig of one cluster and one user, as JSON, which is valid YAML; returns `path`."""

    def embedded(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority-data": embedded(ca)}}],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": embedded(client.certificate),
                    "client-key-data": embedded(client.key),
                },
            }
        ],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user, "namespace": "default"}}],
        "current-context": "local",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path
