"""dynamoctl: run, render, inspect and try Dynamo Platform."""
