"""Writes the progress of profiling to the request's output ConfigMap. Runs in the profiling pod; needs only the standard
library.

Its source is the command of a container that ends after the profiler's container. It follows the status file, and writes
the profiler's files when the status reports the end, and again on SIGTERM, which arrives after the profiler has ended. The
ConfigMap equals the reference's (operator behaviour, section 7.5): keys phase, message, profiler_status, profiler_error,
and the profiler's files by name.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import ssl
import sys
import threading
import time
import urllib.request
from pathlib import Path

ACCOUNT = Path(os.environ.get("RELAY_ACCOUNT_DIR", "/var/run/secrets/kubernetes.io/serviceaccount"))
OUTPUT = Path(os.environ.get("RELAY_OUTPUT_DIR", "/data"))
POLL = float(os.environ.get("RELAY_POLL_SECONDS", "5"))
#: Kubernetes refuses ConfigMaps beyond 1 MiB. Bytes of all files together, and characters of one scalar next to them.
LIMIT, SCALAR = 900_000, 4096
#: By importance: if not all fit, the first ones are written.
FILES = ("final_config.yaml", "profiler_status.yaml", "webui_data.json")
#: Escape letters in double-quoted texts, and their characters.
ESCAPES = dict(zip("0abtnvfreN_LP", "\0\a\b\t\n\v\f\r\x1b\x85\xa0\u2028\u2029", strict=True))

ended = threading.Event()


def status_of(text: str) -> dict[str, str]:
    """Top-level scalars of the status file, as PyYAML writes them: plain or quoted, and folded over lines if long."""
    scalars: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        match = re.match(r"([A-Za-z_]+):(?: (.*))?$", line)
        if match:
            lines = scalars[match.group(1)] = [match.group(2) or ""]
        else:
            lines.append(line)
    return {key: scalar(lines)[:SCALAR] for key, lines in scalars.items()}


def scalar(lines: list[str]) -> str:
    """The text of a scalar; empty if the line of its key has none."""
    text = lines[0].strip()
    quote = text[:1]
    if not text:
        return ""
    breaks = 0
    for part in (line.strip() for line in lines[1:]):
        if not part:
            breaks += 1
        elif quote == '"' and (len(text) - len(text.rstrip("\\"))) % 2:
            text, breaks = text[:-1] + part, 0
        else:
            text, breaks = text + ("\n" * breaks or " ") + part, 0
    if len(text) < 2 or quote not in "'\"" or text[-1] != quote:
        return text
    if quote == "'":
        return text[1:-1].replace("''", "'")
    return re.sub(r"\\(x..|u.{4}|U.{8}|.)", lambda match: unescaped(match.group(1)), text[1:-1])


def unescaped(escape: str) -> str:
    """The character of an escape in a double-quoted text; the argument has no backslash. An invalid escape is kept."""
    if len(escape) == 1:
        return ESCAPES.get(escape, escape)
    try:
        return chr(int(escape[1:], 16))
    except (ValueError, OverflowError):
        return escape


def read(name: str) -> str:
    """The text of a file of the profiler; empty without the file."""
    try:
        with (OUTPUT / name).open("rb") as file:
            return file.read(LIMIT + 1).decode(errors="replace")
    except OSError:
        return ""


def progress() -> dict[str, str]:
    """The data of the ConfigMap while the profiler runs."""
    reported = status_of(read("profiler_status.yaml"))
    return {
        "phase": reported.get("phase", ""),
        "message": reported.get("message", ""),
        "profiler_status": reported.get("status", ""),
    }


def results() -> dict[str, str]:
    """The data of the ConfigMap after the profiler has ended."""
    data = progress()
    room = LIMIT
    for name in FILES:
        text = read(name)
        if not text:
            continue
        size = len(text.encode())
        if size <= room:
            data[name] = text
            room -= size
        elif name == "final_config.yaml":
            data["profiler_status"] = "failed"
            data["profiler_error"] = f"{name} is larger than {LIMIT} bytes, too large for a ConfigMap"
    if data["profiler_status"] == "failed":
        reported = status_of(data.get("profiler_status.yaml", ""))
        data.setdefault(
            "profiler_error", reported.get("error") or reported.get("message") or "the profiler reported no reason"
        )
    return data


def apply(data: dict[str, str]) -> None:
    """Server-side apply of the ConfigMap. Raises OSError if it fails, HTTPException if the answer is incomplete or invalid."""
    config_map = json.loads(os.environ["RELAY_CONFIG_MAP"])
    config_map["data"] = {key: value for key, value in data.items() if value}
    metadata = config_map["metadata"]
    path = (
        f"/api/v1/namespaces/{metadata['namespace']}/configmaps/{metadata['name']}?fieldManager=dynamo-relay&force=true"
    )
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    token = (ACCOUNT / "token").read_text().strip()
    request = urllib.request.Request(
        f"https://{host}:{port}{path}",
        method="PATCH",
        data=json.dumps(config_map).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/apply-patch+yaml"},
    )
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=10):
        pass


def deliver(data: dict[str, str], attempts: int) -> bool:
    """Apply, with retries. Returns whether it succeeded."""
    for attempt in range(attempts):
        try:
            apply(data)
        except (OSError, http.client.HTTPException) as error:
            print(f"cannot write the ConfigMap: {error!r}", file=sys.stderr, flush=True)
            if attempt + 1 < attempts:
                time.sleep(min(2.0**attempt, 5.0))
        else:
            return True
    return False


def main() -> int:
    """Relay progress until the profiler has ended, then write its files."""
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    reported: dict[str, str] = {}
    while not ended.wait(POLL):
        now = progress()
        if now != reported and any(now.values()):
            # The last status is written with all files, even if the signal was missed.
            over = now["profiler_status"] in ("success", "failed")
            reported = now if deliver(results() if over else now, 1) else reported
    return 0 if deliver(results(), 6) else 1


if __name__ == "__main__":
    sys.exit(main())
