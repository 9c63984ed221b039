"""`python -m dynamo_ctl` is `dynamoctl`."""

from __future__ import annotations

from dynamo_ctl.cli import main

main()
