"""dynamoctl: run, render, look at and try Dynamo Platform."""
