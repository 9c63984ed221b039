"""`dynamoctl`, and `python -m dynamo_ctl`."""

import sys


def main() -> None:
    """Entry point. Ctrl-C during the imports ends the program without a traceback."""
    try:
        from dynamo_ctl import cli  # noqa: PLC0415 - so that Ctrl-C during the import is caught
    except KeyboardInterrupt:
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
