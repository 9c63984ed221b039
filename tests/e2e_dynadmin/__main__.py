"""`python -m tests.e2e_dynadmin`: `make e2e-dynadmin` calls it. `--only WORD` runs the checks whose name has the word."""

import argparse
import asyncio
import shutil
import sys
import time
import traceback
from pathlib import Path

from tools.page.node import Node

from . import checks
from .stage import Stage, staged

FOLDER = Path(".dynamo/e2e-dynadmin")
#: Limit for one check; profiling simulates on a busy machine. Seconds.
WITHIN = 420.0


async def _run(only: str, folder: Path) -> int:
    chosen = [each for each in checks.ALL if only in each.__name__]
    held = 0
    async with staged(folder) as stage:
        for check in chosen:
            held += await _held(check, stage)
    print(f"screenshots are in {FOLDER / 'screenshots'}")
    print(f"dynadmin {held}/{len(chosen)} held")
    return 0 if held == len(chosen) else 1


async def _held(check: checks.Check, stage: Stage) -> bool:
    title = (check.__doc__ or check.__name__).splitlines()[0].rstrip(".")
    started, before = time.monotonic(), len(stage.people)
    try:
        async with asyncio.timeout(WITHIN):
            await check(stage)
    except Exception as error:
        print(f"FAILED  {title}: {str(error).splitlines()[0][:300] if str(error) else type(error).__name__}")
        (FOLDER / f"{check.__name__}.txt").write_text(traceback.format_exc())
        for number, person in enumerate(stage.people[before:]):
            await stage.screenshot(person, f"failed-{check.__name__}-{number}")
        return False
    finally:
        if check is not checks.nothing_leaves_the_origin:
            for person in stage.people[before:]:
                await person.page.context.close()
    print(f"held    {title} ({time.monotonic() - started:.1f} s)", flush=True)
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.e2e_dynadmin", description=__doc__)
    parser.add_argument("--only", default="", help="a word of the names of checks")
    arguments = parser.parse_args()
    Node().obtain()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    sys.exit(asyncio.run(_run(arguments.only, FOLDER.absolute())))
