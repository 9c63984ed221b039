"""From what a user intends to the object that says so: pure, and the only place where it is done."""

from __future__ import annotations

from dynamo_dynadmin.deploy.intent import DeployIntent, read_intent
from dynamo_dynadmin.deploy.problems import InvalidIntent, Problem
from dynamo_dynadmin.deploy.translation import Platform, Translation, translate

__all__ = ["DeployIntent", "InvalidIntent", "Platform", "Problem", "Translation", "read_intent", "translate"]
