"""`python -m tests.dynamo_runtime [MODEL_DIRECTORY]`: create the environment, and a tiny model if a directory is given.

With `--optional`, a machine that cannot run it gets a message and exit code 0: tests that need the runtime are skipped.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from dynamo_devcluster.progress import LineProgress

from .environment import RuntimeUnavailableError, obtain
from .models import tiny_model


async def _main(model: Path | None) -> None:
    environment = await obtain(progress=LineProgress())
    print(f"Dynamo runtime: {environment.root}")
    if model is not None:
        print(await tiny_model(environment, model))


parser = argparse.ArgumentParser(prog="python -m tests.dynamo_runtime", description=__doc__)
parser.add_argument("model", nargs="?", type=Path, help="write a tiny model into this folder, too")
parser.add_argument("--optional", action="store_true", help="succeed even if the runtime cannot be installed")
arguments = parser.parse_args()
try:
    asyncio.run(_main(arguments.model))
except RuntimeUnavailableError as error:
    if not arguments.optional:
        sys.exit(str(error))
    print(f"Dynamo runtime not installed, tests that need it are skipped: {error}", file=sys.stderr)
