"""Translates a user's intent into the object that expresses it: pure, and the only place that does this."""

from dynamo_dynadmin.deploy.draft import Draft
from dynamo_dynadmin.deploy.intent import read_intent
from dynamo_dynadmin.deploy.platform_defaults import PlatformDefaults
from dynamo_dynadmin.deploy.problems import InvalidIntent
from dynamo_dynadmin.deploy.translation import translate

__all__ = ["Draft", "InvalidIntent", "PlatformDefaults", "read_intent", "translate"]
