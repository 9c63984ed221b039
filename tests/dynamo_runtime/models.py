"""The model that the tests' workers serve: generated, a few dozen kilobytes; nothing is downloaded."""

import asyncio
from pathlib import Path

from .environment import RuntimeEnvironment

_SCRIPT = Path(__file__).with_name("make_tiny_model.py")


async def tiny_model(environment: RuntimeEnvironment, directory: Path) -> Path:
    """Writes the model's folder (tokenizer and configuration, no weights) and returns it."""
    process = await asyncio.create_subprocess_exec(
        str(environment.python), str(_SCRIPT), str(directory),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the tiny model was not created: {output.decode(errors='replace')}")
    return directory
