"""Known facts about a model: whether AI Configurator can simulate it, and the size of its weights.

Downloads nothing unless the settings allow it. Imports nothing of AI Configurator, which has configurations as files.
"""

import hashlib
import importlib.util
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from dynamo_shared.runtime.settings.planner import Rapid


class KnownFrom(StrEnum):
    """The source of a model's architecture."""

    SHIPPED = "shipped"
    """AI Configurator ships it"""
    FOLDER = "folder"
    """its config.json is in the folder of models"""
    SIBLING = "sibling"
    """AI Configurator ships a model of the same family and size"""
    DOWNLOAD = "download"
    """AI Configurator downloads it from Hugging Face"""
    NAME = "name"
    """only the number of parameters is known, from the name"""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArchitecture:
    """The known facts about a model."""

    name: str
    known: KnownFrom
    path: str | None = None
    """the model that AI Configurator should simulate; None if it cannot"""
    digest: str = ""
    """digest of a configuration that the platform read: another digest is another model"""
    weights_bytes: int | None = None
    """size of all weights"""
    experts: bool = False
    """whether it is a mixture of experts"""
    latent: bool = False
    """whether it uses a compressed cache (multi-head latent attention)"""
    max_context: int | None = None
    """longest context of the model, tokens"""
    cache_bytes: int | None = None
    """KV cache of one token in all layers, with 16 bits for each value; None if unknown, or not the same for all tokens
    """
    cache_heads: int = 1
    """number of heads by which tensor-parallel ranks divide the cache"""


_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)([mbt])(?![a-z0-9])", re.IGNORECASE)
_BILLIONS = {"m": 0.001, "b": 1.0, "t": 1000.0}
#: A smaller number is not the size of a model: `1M` is a length of context.
_LEAST = 0.01
_ACTIVE = re.compile(r"(?<![a-z0-9])a\d{1,3}(?:\.\d+)?b(?![a-z0-9])", re.IGNORECASE)
#: Number formats in names. Names without one mean two bytes (16 bits) for each parameter.
_FOUR_BITS = re.compile(r"fp4|nvfp4|mxfp4|int4|w4a|4bit|awq|gptq", re.IGNORECASE)
_EIGHT_BITS = re.compile(r"fp8|int8|w8a|8bit", re.IGNORECASE)
#: Bytes. Names on Hugging Face are shorter, and file names have at most 255. A request may have a megabyte, and the
#: regular expressions for names scan to the end from each character.
_LONGEST_NAME = 250
#: Keys of configurations whose layers do not all keep all tokens.
_UNEVEN = (
    "hybrid_override_pattern",
    "full_attention_interval",
    "block_configs",
    "use_sliding_window",
    "index_topk",
    "attn_layer_period",
)
#: Endings that describe the training, not the architecture.
_TRAINING = re.compile(r"(?:-(?:instruct|base|chat|it|hf|thinking|terminus|\d{4}|v0\.\d))+$", re.IGNORECASE)


def known_model(name: str, settings: Rapid) -> ModelArchitecture:
    """The known facts about a model, by its name on Hugging Face or its path."""
    if len(name.encode(errors="replace")) > _LONGEST_NAME:
        return ModelArchitecture(name=name, known=KnownFrom.NOTHING)
    shipped = _shipped()
    if name in shipped:
        return _of_config(name, KnownFrom.SHIPPED, name, shipped[name])
    folder = _folder(name, settings.models_dir)
    if folder is not None:
        config = folder / "config.json"
        model = _of_config(name, KnownFrom.FOLDER, str(folder), config)
        return model if model.path else _by_name(name)
    sibling = sibling_of(name, tuple(shipped))
    if sibling is not None:
        return _of_config(name, KnownFrom.SIBLING, sibling, shipped[sibling])
    if settings.download and re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        guess = _by_name(name)
        return ModelArchitecture(name=name, known=KnownFrom.DOWNLOAD, path=name, weights_bytes=guess.weights_bytes)
    return _by_name(name)


def sibling_of(name: str, known: tuple[str, ...]) -> str | None:
    """A model with the same architecture according to its name: same family, size and number format, other training."""
    family = _family(name)
    return next((each for each in sorted(known) if _family(each) == family), None) if family else None


def parameters_in(name: str) -> float | None:
    """Billions of parameters in a name: 7 for `Qwen2.5-7B`, 56 for `8x7B`, 235 for `235B-A22B`, 1000 for `1T`.

    A number of billions has priority: in the same name, `1M` means tokens of context, and `3T` tokens of training.
    """
    sizes: dict[str, list[float]] = {}
    for count, size, unit in _SIZE.findall(_ACTIVE.sub("", name)):
        sizes.setdefault(unit.lower(), []).append(float(size) * int(count or 1) * _BILLIONS[unit.lower()])
    sizes["m"] = [size for size in sizes.get("m", ()) if size >= _LEAST]
    return next((max(sizes[unit]) for unit in "btm" if sizes.get(unit)), None)


def bytes_per_parameter(name: str) -> float:
    """Bytes of a parameter according to the name of a checkpoint."""
    if _FOUR_BITS.search(name):
        return 0.5
    return 1.0 if _EIGHT_BITS.search(name) else 2.0


def weights_of(config: dict[str, Any], name: str) -> tuple[int | None, bool]:
    """The size of the weights according to config.json (None if unknown), and whether the model is a mixture of
    experts.
    """
    text = config.get("text_config")
    sizes = text if isinstance(text, dict) else config

    def number(*keys: str) -> int | None:
        return next((value for key in keys if isinstance(value := sizes.get(key), int) and value > 0), None)

    layers, hidden, vocabulary = number("num_hidden_layers"), number("hidden_size"), number("vocab_size")
    if layers is None or hidden is None or vocabulary is None:
        return None, False
    experts = number("n_routed_experts", "num_experts", "num_local_experts") or 1
    inner = number("intermediate_size") or 4 * hidden
    inner_of_expert = number("moe_intermediate_size") or inner
    heads = number("num_attention_heads") or 1
    head = number("head_dim") or hidden // heads
    kv_heads = number("num_key_value_heads") or heads
    attention = 2 * hidden * head * (heads + kv_heads)
    feed_forward = 3 * hidden * (inner_of_expert * experts if experts > 1 else inner)
    tied = sizes.get("tie_word_embeddings", config.get("tie_word_embeddings")) is True
    parameters = vocabulary * hidden * (1 if tied else 2) + layers * (attention + feed_forward)
    quantization = config.get("quantization_config")
    method = json.dumps(quantization) if isinstance(quantization, dict) else name
    return int(parameters * bytes_per_parameter(method)), experts > 1


def cache_of(config: dict[str, Any]) -> tuple[int | None, int]:
    """Bytes of the KV cache of one token with 16 bits for each value, and the heads by which ranks divide it."""
    layers, hidden, heads = (config.get(key) for key in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    kinds = config.get("layer_types") or ()
    uneven = any(config.get(key) for key in _UNEVEN) or any(kind != "full_attention" for kind in kinds)
    if uneven or not (isinstance(layers, int) and isinstance(hidden, int) and isinstance(heads, int) and heads > 0):
        return None, 1
    if isinstance(rank := config.get("kv_lora_rank"), int):
        return layers * (rank + int(config.get("qk_rope_head_dim") or 0)) * 2, 1
    kv_heads = int(config.get("num_key_value_heads") or heads)
    return layers * 2 * kv_heads * int(config.get("head_dim") or hidden // heads) * 2, kv_heads


def _of_config(name: str, known: KnownFrom, path: str, config: Path) -> ModelArchitecture:
    try:
        text = config.read_bytes()
        data = json.loads(text)
        weights, experts = weights_of(data, name)
        sizes = {**data, **data["text_config"]} if isinstance(data.get("text_config"), dict) else data
        cache_bytes, cache_heads = cache_of(sizes)
    except (OSError, ValueError, AttributeError, TypeError):
        return _by_name(name)
    context = sizes.get("max_position_embeddings")
    return ModelArchitecture(
        name=name,
        known=known,
        path=path,
        digest=hashlib.sha256(text).hexdigest() if known is KnownFrom.FOLDER else "",
        weights_bytes=weights,
        experts=experts,
        latent=isinstance(sizes.get("kv_lora_rank"), int),
        max_context=context if isinstance(context, int) and context > 0 else None,
        cache_bytes=cache_bytes,
        cache_heads=cache_heads,
    )


def _by_name(name: str) -> ModelArchitecture:
    billions = parameters_in(name)
    if billions is None:
        return ModelArchitecture(name=name, known=KnownFrom.NOTHING)
    weights = int(billions * 1e9 * bytes_per_parameter(name))
    return ModelArchitecture(name=name, known=KnownFrom.NAME, weights_bytes=weights, experts=bool(_ACTIVE.search(name)))


def _folder(name: str, models: Path | None) -> Path | None:
    """The folder of a model's configuration below the folder of models. A name never leads out of it."""
    if models is None:
        return None
    parts = [part for part in name.split("/") if part]
    if not parts or any(part in (".", "..") for part in parts):
        return None
    folders = (models.joinpath(*parts), models.joinpath(*parts[-2:]), models / "--".join(parts[-2:]))
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def _family(name: str) -> str | None:
    """`llama-3.1-70b` for `meta-llama/Llama-3.1-70B-Instruct` and for `meta-llama/Meta-Llama-3.1-70B`."""
    owner, _, model = name.rpartition("/")
    short = _TRAINING.sub("", model).lower().removeprefix("meta-")
    # Llama 3.3 70B is 3.1 70B with more training, and DeepSeek V3.1 is V3. R1 has V3's architecture; distilled models
    # do not.
    short = short.replace("llama-3.3-70b", "llama-3.1-70b").replace("deepseek-v3.1", "deepseek-v3")
    return f"{owner.lower()}/{short}" if owner and short else None


@cache
def _shipped() -> dict[str, Path]:
    """Configurations that AI Configurator ships, by name."""
    spec = importlib.util.find_spec("aiconfigurator_core")
    roots = [Path(each) for each in spec.submodule_search_locations or ()] if spec else []
    ending = "_config.json"
    return {
        path.name.removesuffix(ending).replace("--", "/", 1): path
        for root in roots
        for path in (root / "model_configs").glob(f"*{ending}")
        if not path.name.endswith("_hf_quant_config.json")
    }
