"""`dynamoctl`, and `python -m dynamo_ctl`."""

import sys
from importlib.abc import MetaPathFinder
from typing import Any


class PlainStructlog(MetaPathFinder):
    """Keeps structlog from importing rich, for tracebacks that dynamoctl does not print: a sixth of the start of a
    command.
    """

    def find_spec(self, name: str, *_: Any) -> None:
        """Raises ImportError for rich while structlog is imported. Others find all other modules."""
        spec = getattr(sys.modules.get("structlog"), "__spec__", None)
        if name == "rich" and getattr(spec, "_initializing", False):
            raise ImportError(name)


def main() -> None:
    """Entry point. Ctrl-C during the imports ends the program without a traceback."""
    sys.meta_path.insert(0, PlainStructlog())
    try:
        from dynamo_ctl import cli  # so that Ctrl-C during the import is caught
    except KeyboardInterrupt:
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
