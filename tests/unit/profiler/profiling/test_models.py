"""What is known of models."""

import json
from pathlib import Path

import pytest
from dynamo_profiler.profiling.models import KnownFrom, bytes_per_parameter, known_model, parameters_in
from dynamo_shared.runtime.settings.planner import Rapid


@pytest.mark.parametrize(
    ("name", "known", "path"),
    [
        ("Qwen/Qwen3-32B", KnownFrom.SHIPPED, "Qwen/Qwen3-32B"),
        ("meta-llama/Llama-3.1-70B-Instruct", KnownFrom.SIBLING, "meta-llama/Meta-Llama-3.1-70B"),
        ("meta-llama/Llama-3.3-70B-Instruct", KnownFrom.SIBLING, "meta-llama/Meta-Llama-3.1-70B"),
        ("deepseek-ai/DeepSeek-R1-0528", KnownFrom.SIBLING, "deepseek-ai/DeepSeek-R1"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", KnownFrom.SIBLING, "deepseek-ai/DeepSeek-V3"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", KnownFrom.SIBLING, "Qwen/Qwen3-235B-A22B"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", KnownFrom.SIBLING, "mistralai/Mixtral-8x7B-v0.1"),
        # Another number format is another model, and so is a distillate.
        ("Qwen/Qwen3-32B-AWQ", KnownFrom.NAME, None),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", KnownFrom.NAME, None),
        ("someone/Qwen3-32B", KnownFrom.NAME, None),
        ("Qwen/Qwen2.5-0.5B", KnownFrom.NAME, None),
        ("acme/secret", KnownFrom.NOTHING, None),
        ("../../etc", KnownFrom.NOTHING, None),
    ],
)
def test_an_architecture_comes_from_its_best_source(name: str, known: KnownFrom, path: str | None):
    model = known_model(name, Rapid())
    assert (model.known, model.path) == (known, path)


@pytest.mark.parametrize(
    "name",
    ["a/" + "b" * 249, "a/" + "é" * 200, "acme/b" + "-it" * 300_000 + "!", "x" * 1_000_000],
    ids=["a file", "a file of other letters", "endings", "a megabyte"],
)
def test_a_very_long_name_is_handled_quickly(tmp_path: Path, name: str):
    """The schema has no bound: endings of training were searched for from each of its characters, for days."""
    assert known_model(name, Rapid(models_dir=tmp_path)).known is KnownFrom.NOTHING


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Qwen2.5-0.5B", 0.5),
        ("Llama-3.1-70B-Instruct", 70),
        ("Mixtral-8x7B-v0.1", 56),
        ("Qwen3-235B-A22B", 235),
        ("gpt-oss-120b", 120),
        ("SmolLM2-135M-Instruct", 0.135),
        ("Ling-1T", 1000),
        # Tokens of context, and of training.
        ("Qwen2.5-7B-Instruct-1M", 7),
        ("TinyLlama-1.1B-intermediate-step-1431k-3T", 1.1),
        ("context-1M", None),
        ("phi-4", None),
        ("model-v2.5", None),
        ("abc7bx", None),
    ],
)
def test_parameters_are_read_from_the_name(name: str, billions: float | None):
    assert parameters_in(name) == billions


@pytest.mark.parametrize(
    ("name", "size"), [("Qwen3-32B", 2.0), ("Qwen3-32B-FP8", 1.0), ("x-w8a8", 1.0), ("x-AWQ", 0.5), ("x-NVFP4", 0.5)]
)
def test_bytes_per_parameter_are_read_from_the_name(name: str, size: float):
    assert bytes_per_parameter(name) == size


@pytest.mark.parametrize(("name", "billions"), [("Qwen/Qwen3-32B", 32.8), ("meta-llama/Meta-Llama-3.1-8B", 8.0)])
def test_weights_of_shipped_configurations_are_computed(name: str, billions: float):
    assert known_model(name, Rapid()).weights_bytes == pytest.approx(billions * 2e9, rel=0.03)


def test_eight_bit_experts_with_a_compressed_cache_are_computed():
    model = known_model("deepseek-ai/DeepSeek-V3", Rapid())
    assert model.experts
    assert model.latent
    assert model.weights_bytes == pytest.approx(671e9, rel=0.06)


CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
}


@pytest.mark.parametrize("folder", ["Qwen/Qwen2.5-7B-Instruct", "Qwen--Qwen2.5-7B-Instruct"])
def test_a_configuration_in_the_models_directory_is_used(tmp_path, folder: str):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "config.json").write_text(json.dumps(CONFIG))
    model = known_model("Qwen/Qwen2.5-7B-Instruct", Rapid(models_dir=tmp_path))
    assert model.known is KnownFrom.FOLDER
    assert model.path == str(tmp_path / folder)
    assert model.max_context == 32768
    assert model.weights_bytes == pytest.approx(7.6e9 * 2, rel=0.03)
    assert model.digest


def test_names_cannot_leave_the_models_directory(tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "models").mkdir()
    assert known_model("../secret", Rapid(models_dir=tmp_path / "models")).path is None


def test_invalid_configurations_are_ignored(tmp_path):
    (tmp_path / "a/b-7B").mkdir(parents=True)
    (tmp_path / "a/b-7B" / "config.json").write_text("[1")
    assert known_model("a/b-7B", Rapid(models_dir=tmp_path)).known is KnownFrom.NAME


def test_downloads_happen_only_if_enabled():
    assert known_model("acme/secret", Rapid()).path is None
    assert known_model("acme/secret", Rapid(download=True)).known is KnownFrom.DOWNLOAD
    assert known_model("/models/secret", Rapid(download=True)).path is None


@pytest.mark.parametrize(
    ("name", "cache"),
    [
        ("meta-llama/Meta-Llama-3.1-8B", (32 * 2 * 8 * 128 * 2, 8)),
        ("deepseek-ai/DeepSeek-V3", (61 * (512 + 64) * 2, 1)),
        # Layers that keep a window, or nothing, of what was before.
        ("openai/gpt-oss-120b", (None, 1)),
        ("nvidia/Nemotron-H-56B-Base-8K", (None, 1)),
        ("Qwen/Qwen3.5-27B", (None, 1)),
        ("acme/secret", (None, 1)),
    ],
)
def test_cache_bytes_of_a_token_are_computed(name: str, cache: tuple[int | None, int]):
    model = known_model(name, Rapid())
    assert (model.cache_bytes, model.cache_heads) == cache
