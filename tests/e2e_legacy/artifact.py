"""The archive that the examples name; its image serves the command line and environment with which it was started."""

import io
import tarfile

TAG = "frontend:jh2o6dqzpsgfued4"
ENTRY = "graphs.disagg:Frontend"
#: No image is pulled: the archive contains the shell for its own steps.
DOCKERFILE = """FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY uv /bin/uv
COPY bento.yaml /bento/bento.yaml
COPY src /bento/src
WORKDIR /bento
ENV PATH=/bin
"""
#: A stand-in for uv: it answers the frontend's probes, and serves how it was started.
UV = """#!/bin/sh
mkdir -p /tmp/www
echo "$PWD: uv $*" > /tmp/www/started
env > /tmp/www/env
echo ok > /tmp/www/health
echo ok > /tmp/www/live
exec httpd -f -p 8000 -h /tmp/www
"""
BENTO = f"service: {ENTRY}\nname: frontend\nversion: jh2o6dqzpsgfued4\n"


def packed(busybox: bytes) -> bytes:
    """The archive in BentoML's layout."""
    files = {
        "env/docker/Dockerfile": DOCKERFILE.encode(),
        "bento.yaml": BENTO.encode(),
        "src/graphs/disagg.py": b"",
        "busybox": busybox,
        "uv": UV.encode(),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
