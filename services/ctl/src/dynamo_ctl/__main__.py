"""`python -m dynamo_ctl` is `dynamoctl`."""

from dynamo_ctl.cli import main

main()
