"""Writes a model without weights that any tokenizer library accepts; the runtime's own interpreter runs it.

A byte-level BPE tokenizer of 256 bytes and a few special tokens, with the configuration of a two-layer Llama. Mockers
only read the configuration and the tokenizer. `python make_tiny_model.py DIRECTORY`.
"""

import json
import sys
from pathlib import Path

SPECIAL = ("<unk>", "<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONTEXT_LENGTH = 2048


def write(directory: Path) -> None:
    """Write all files of the model; existing ones are replaced."""
    # Only the runtime's environment has this package.
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # type: ignore[import-not-found]

    directory.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=SPECIAL[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    tokenizer.save(str(directory / "tokenizer.json"))
    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}
    _json(
        directory / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": len(vocabulary),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": CONTEXT_LENGTH,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            **ids,
        },
    )
    _json(directory / "generation_config.json", {"temperature": 1.0, **ids})
    _json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT_LENGTH,
            "bos_token": SPECIAL[1],
            "eos_token": SPECIAL[2],
            "unk_token": SPECIAL[0],
            "pad_token": SPECIAL[3],
            "chat_template": CHAT_TEMPLATE,
        },
    )


def _json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
