"""`python -m tools.images [--parts planner] [--twice]`: builds an image of the platform. `make image` calls it."""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

from . import base, engine, sbom
from .commands import ImageError
from .engine import ContainerEngine, ImageBuild

ROOT = Path(__file__).parents[2]
OUTPUT = Path(".dynamo/images")
BASE = "docker.io/library/python:3.13-slim-trixie"
#: Requirements file of requirements/ -> name of the image.
IMAGES = {"runtime": "dynamo-platform", "planner": "dynamo-platform-planner"}
#: Variables of markers that may differ between the build machine and the image.
MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.images", description=__doc__)
    parser.add_argument("--parts", choices=IMAGES, default="runtime", help="what is in it")
    parser.add_argument("--tag", default="development")
    parser.add_argument("--base", default=BASE, help="the image it is based on; pin it with @sha256:...")
    parser.add_argument("--platform", choices=MACHINES, default=engine.native_platform())
    parser.add_argument("--twice", action="store_true", help="build it twice, and fail where the digests differ")
    options = parser.parse_args()
    try:
        builder = engine.find()
        result = base.obtain(builder, options.base, options.platform)
        archive, digest = _build(builder, options, result)
        print(f"{archive}: {IMAGES[options.parts]}:{options.tag} {options.platform} {digest}")
        if options.twice:
            _, again = _build(builder, options, result)
            print(f"built again: {again}")
            if again != digest:
                print("the same source became another image", file=sys.stderr)
                return 1
        print(_bill(options, result))
    except ImageError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _build(builder: ContainerEngine, options: argparse.Namespace, observed: str) -> tuple[Path, str]:
    begun = time.monotonic()
    name = f"{IMAGES[options.parts]}:{options.tag}"
    print(f"building {name} for {options.platform} with {builder.program} ...", flush=True)
    archive = OUTPUT / f"{IMAGES[options.parts]}-{options.platform.partition('/')[2]}.oci.tar"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dynamo-image-") as folder:
        epoch = _epoch()
        arguments = {
            "BASE": observed,
            "PARTS": options.parts,
            "VERSION": _version(),
            "REVISION": _git("rev-parse", "HEAD") or "unknown",
            "SOURCE_DATE_EPOCH": str(epoch),
        }
        builder.build(ImageBuild(name, options.platform, epoch, arguments, _secrets(Path(folder))), ROOT)
    builder.export(name, archive)
    print(f"built in {time.monotonic() - begun:.0f} s", flush=True)
    return archive, _digest(archive)


def _digest(archive: Path) -> str:
    """The digest of the image's manifest, which registries keep."""
    with tarfile.open(archive) as tar:
        index = tar.extractfile("index.json")
        if index is None:
            raise ImageError(f"{archive} is not an OCI archive: it has no index.json")
        return str(json.load(index)["manifests"][0]["digest"])


def _bill(options: argparse.Namespace, observed: str) -> Path:
    environment = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": MACHINES[options.platform],
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{base.PYTHON_VERSION}.0",
        "python_version": base.PYTHON_VERSION,
        "sys_platform": "linux",
    }
    name = IMAGES[options.parts]
    absent = {"devcluster"} if options.parts == "planner" else {"devcluster", "profiler", "planner"}
    projects = [ROOT / "shared/pyproject.toml", *sorted(ROOT.glob("services/*/pyproject.toml"))]
    projects = [path for path in projects if path.parent.name not in absent]
    locked = list(sbom.locked((ROOT / "requirements" / f"{options.parts}.txt").read_text()))
    text = sbom.document(
        name=name, version=_version(), epoch=_epoch(), packages=locked, environment=environment,
        projects=projects, debian=base.debian_packages(observed),
    )  # fmt: skip
    target = OUTPUT / f"{name}-{options.platform.partition('/')[2]}.cdx.json"
    target.write_text(text)
    return target


def _secrets(folder: Path) -> dict[str, Path]:
    """The machine's pip configuration, only for the build: no layer and no history contains it."""
    secrets = {}
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if certificates and Path(certificates).is_file():
        secrets["certificates"] = Path(certificates)
    shown = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    if index := os.environ.get("PIP_INDEX_URL") or shown.stdout.strip():
        secrets["pip"] = folder / "pip.conf"
        secrets["pip"].write_text(f"[global]\nindex-url = {index}\n")
        secrets["pip"].chmod(0o600)
    return secrets


def _epoch() -> int:
    """SOURCE_DATE_EPOCH, otherwise the time of the commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct") or 0)


def _version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
