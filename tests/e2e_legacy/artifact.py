"""The archive that the examples name, and what its image does: it serves what it was started with."""

import io
import tarfile

TAG = "frontend:jh2o6dqzpsgfued4"
ENTRY = "graphs.disagg:Frontend"
#: Nothing is pulled: the archive brings the shell that its own steps run in.
DOCKERFILE = """FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY uv /bin/uv
COPY bento.yaml /bento/bento.yaml
COPY src /bento/src
WORKDIR /bento
ENV PATH=/bin
"""
#: In place of uv: it answers the frontend's probes, and shows how it was started.
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
    """The archive, as BentoML lays one out."""
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
