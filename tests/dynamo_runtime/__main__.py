"""`python -m tests.dynamo_runtime [MODEL_DIRECTORY]`: makes the environment, and a tiny model where one is asked for."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from .environment import RuntimeUnavailableError, obtain
from .models import tiny_model


async def _main() -> None:
    environment = await obtain()
    print(environment.root)
    if len(sys.argv) > 1:
        print(await tiny_model(environment, Path(sys.argv[1])))


try:
    asyncio.run(_main())
except RuntimeUnavailableError as error:
    sys.exit(str(error))
