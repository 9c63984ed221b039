"""The folder of obtained programs. Its files are always complete: an atomic rename installs them."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .catalog import Program
from .locks import file_lock


def default_cache_root(environ: Mapping[str, str] | None = None) -> Path:
    """`$XDG_CACHE_HOME/dynamo-platform`, by default below `~/.cache`."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dynamo-platform"


class ProgramCache:
    """Programs as `<root>/bin/<program>-<version>`."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_cache_root()

    def path(self, program: Program) -> Path:
        """The path of the program, which may not exist yet."""
        return self.root / "bin" / program.file_name

    def get(self, program: Program) -> Path | None:
        """The path of the program; None if it is not in the cache."""
        path = self.path(program)
        return path if path.is_file() and os.access(path, os.X_OK) else None

    @contextlib.contextmanager
    def staging(self, program: Program) -> Iterator[Path]:
        """A folder for unfinished files on the cache's file system; always removed at the end."""
        (self.root / "bin").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{program.file_name}-", dir=self.root / "bin") as folder:
            yield Path(folder)

    def install(self, program: Program, finished: Path) -> Path:
        """Move a finished file (from `staging`) to its name, atomically."""
        finished.chmod(0o755)
        finished.replace(self.path(program))
        return self.path(program)

    def lock(
        self, program: Program, waiting: Callable[[], object] = lambda: None
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """The program's lock, so that two processes never obtain the program at the same time. `waiting` is called once
        if another process holds it.
        """
        return file_lock(self.root / "locks" / f"{program.file_name}.lock", waiting)
