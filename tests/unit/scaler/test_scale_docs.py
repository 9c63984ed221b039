"""The examples of docs/scale-commands.md parse, and the page explains every reason."""

import re
from pathlib import Path

import yaml
from dynamo_scaler.commands import admission, decision, scaling, targets
from dynamo_scaler.safety import holds, verdict
from dynamo_scaler.safety.policy import limits_of
from dynamo_shared.api.registry.annotations import SCALING_POLICY
from dynamo_shared.runtime.settings.scaler import Scaler, ScalingLimits

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "scale-commands.md").read_text()
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_the_annotation_example_parses() -> None:
    (annotations,) = [each for each in EXAMPLES if SCALING_POLICY in each]
    graph = {
        "metadata": {"annotations": annotations},
        "spec": {"components": [{"name": "Decode"}, {"name": "Prefill"}]},
    }
    decode, prefill = (limits_of(graph, name, ScalingLimits()) for name in ("Decode", "Prefill"))
    assert (decode.min, decode.max, decode.up.step, decode.up.cooldown) == (2, 8, 2, 30.0)
    assert (decode.down.cooldown, decode.down.stabilization, prefill.down.cooldown) == (300.0, 300.0, 300.0)
    assert prefill.min == 1


def test_the_settings_example_parses() -> None:
    (settings,) = [each for each in EXAMPLES if "platform" in each]
    scaler = Scaler.model_validate(settings["platform"]["scaler"])
    assert [(each.name, each.min_gpus, each.max_gpus) for each in scaler.budgets] == [
        ("team-a", -1, 16),
        ("cluster", 48, 48),
    ]
    assert scaler.intent_lifetime == Scaler().intent_lifetime == 360.0
    assert Scaler().limits.down.cooldown == 60.0


def test_every_reason_is_documented() -> None:
    modules = (admission, decision, scaling, targets, holds, verdict)
    values = {
        value for module in modules for name, value in vars(module).items() if name.isupper() and _is_reason(value)
    }
    assert len(values) > 15
    assert {value for value in values if f"`{value}`" not in PAGE} == set()


def _is_reason(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"([A-Z][a-z]+)+", value) is not None
