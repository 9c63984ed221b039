"""Control planes with this platform's kinds, started from data that is the same for all of them."""

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from dynamo_ctl.commands.crds.definitions import install_definitions
from dynamo_devcluster import ControlPlane, ControlPlaneOptions, Programs
from dynamo_shared.api.crds import crd_manifests

#: One folder for each combination of programs and definitions, kept between runs; `make clean` removes it.
FOLDER = Path(__file__).parents[2] / ".dynamo" / "prepared"
WITHOUT_CONTROLLERS: dict[str, Any] = {"controller_manager": False, "scheduler": False, "kwok_nodes": 0}


async def prepared(programs: Programs, **options: Any) -> ControlPlaneOptions:
    """Options of a control plane with this platform's kinds; their API server starts with a third less CPU time."""
    return ControlPlaneOptions(**{"prepare": install_definitions, "data": await _data(programs), **options})


async def _data(programs: Programs) -> Path:
    """etcd's data of an API server that served this platform's definitions, and nothing else."""
    paths = await programs.obtain_all(("etcd", "kube-apiserver"))
    inputs = [sorted(map(str, paths.values())), crd_manifests()]
    result = FOLDER / hashlib.sha256(msgspec.json.encode(inputs)).hexdigest()[:16]
    if result.exists():
        return result
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER, prefix="new-") as folder:
        options = ControlPlaneOptions(directory=Path(folder), prepare=install_definitions, **WITHOUT_CONTROLLERS)
        async with ControlPlane(options, programs) as plane:
            pass
        # Another process of the tests may have finished first.
        with suppress(OSError):
            plane.etcd.data.rename(result)
    for each in FOLDER.iterdir():
        if each != result and not each.name.startswith("new-"):
            shutil.rmtree(each, ignore_errors=True)
    return result
