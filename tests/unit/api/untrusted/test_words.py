"""Texts of others are repeated shortened, on one line, and without possible secrets."""

import json

import pytest
from dynamo_shared.api.untrusted.words import escaped, last_of, listed, quoted, redacted
from hypothesis import given
from hypothesis import strategies as st

SECRET = "s3cr3t-Aa1Bb2Cc3Dd4"


@pytest.mark.parametrize(
    "text",
    [
        f"cannot pull https://user:{SECRET}@registry.example.com/v2/",
        f"https://{SECRET}@github.com/team/repo.git",
        f"the entry user:{SECRET}@registry.example.com is not valid",
        f"GET https://bucket.example.com/model?X-Amz-Signature={SECRET}&a=b failed",
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}==",
        f"hf_{'a' * 8}{SECRET}",
        f"export GITHUB=ghp_{SECRET}",
        f"eyJhbGciOiJI.{SECRET}.{SECRET}",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"password = '{SECRET} with a space'",
        f'{{"api_key": "{SECRET}"}}',
        f"HF_TOKEN={SECRET}",
        # Letters that a case-insensitive expression takes for those of the alphabet.
        f"ba\u017f\u0131c {SECRET}",
        f"\u017fecret={SECRET}",
        f"python -m engine --token {SECRET}",
        f'truncated: {{"token": "{SECRET}',
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET.replace('-', '')}\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_possible_secrets_are_masked(text: str) -> None:
    for said in (redacted(text), quoted(text), last_of(text), listed([text])):
        assert SECRET not in said
        assert SECRET.replace("-", "") not in said
        assert "***" in said or "?..." in said


@pytest.mark.parametrize(
    "text",
    [
        "spec.components[0]: max_tokens=4096 is too large",
        "tokenizer: meta-llama/Llama-3.1-8B",
        "Secret team/hf-token: not found",
        "image registry.example.com/team/vllm@sha256:0123456789abcdef is not there",
        "dial tcp 10.0.0.1:8000: connection refused",
        'secret "hf-token-secret" not found',
        "what does it want? nothing",
        "system:serviceaccount:team:default may not list pods",
        "cannot watch secrets: Timeout: the API server sent nothing for 30 s",
        "secrets: Forbidden",
        "Secret team/hf-token: NotFound: it was deleted",
        "spec.modelTokenSecret: Required value",
        "the registry wants basic authentication, not bearer authentication",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert redacted(text) == text


NAMES = st.sampled_from(
    ["secret", "secrets", "hf-token", "password", "API_KEY", "aws_secret_access_key", "credentials", "Authorization"]
)
#: Also begins and ends of words that stay.
VALUES = st.text(alphabet="aeimnortuTFR019+/=_-.", min_size=8, max_size=40).flatmap(
    lambda text: st.sampled_from(
        [text, f"Timeout{text}", f"{text}Timeout", f"Forbidden:{text}", f"authentication{text}"]
    )
)


@given(NAMES, st.sampled_from([": ", ":", "=", " = ", '": "', ": Timeout=", ": '"]), VALUES)
def test_every_value_of_a_suspect_name_is_masked(name: str, separator: str, value: str) -> None:
    assert value not in redacted(f"the {name}{separator}{value} is not valid")
    assert value not in redacted(f"{name}{separator}{value}")


@given(st.sampled_from(["secrets: Timeout: ", "basic authentication, ", "token: NotFound: "]), NAMES, VALUES)
def test_a_secret_after_a_harmless_text_is_masked(begin: str, name: str, value: str) -> None:
    masked = redacted(f"{begin}{name}: {value}")
    assert value not in masked
    assert masked.startswith(begin)


@pytest.mark.parametrize("name", ["password", "api_key", "private-key"])
def test_a_password_may_be_the_name_of_a_reason(name: str) -> None:
    assert redacted(f"{name}: Forbidden") == f"{name}: ***"


@pytest.mark.parametrize(
    "begin", ["eyJaaaaaaaa-", "nvapi-aaaaaaaaaa-", "-----BEGIN PRIVATE KEY-----", "bearer aaaaaaaa "]
)
def test_a_long_text_of_beginnings_of_secrets_is_read_once(begin: str) -> None:
    """A search for the end of each JSON Web Token took thirteen seconds for 100 KB."""
    masked = redacted(begin * (100_000 // len(begin)))
    assert "***" in masked
    assert begin.strip(" -") not in masked


def test_messages_stay_short_and_on_one_line() -> None:
    assert quoted("a\n\tb\x07 c") == "a b c"
    assert len(quoted("x" * 1_000_000)) == 300
    assert last_of("first " + "word " * 1000 + "last").endswith("word last")
    assert len(last_of("word " * 1000)) <= 300
    assert last_of("x" * 1000) == "..."
    assert listed(f"problem {number}" for number in range(1000)).endswith("problem 9; and more")


@given(st.text(alphabet="a:/@?=\"' -BEGINPRIVATEKEYtokenhf_\n", max_size=400), st.integers(1, 200))
def test_the_result_for_any_text_is_bounded(text: str, times: int) -> None:
    assert len(quoted(text * times)) <= 300
    assert len(last_of(text * times)) <= 300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one line", "one line"),
        ("Zoë, 日本語, 👩\u200d💻, a b", "Zoë, 日本語, 👩\u200d💻, a b"),
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[31mred\x1b]0;title\x07", "\\u001b[31mred\\u001b]0;title\\u0007"),
        ("over\rwritten\b\x7f", "over\\u000dwritten\\u0008\\u007f"),
        ("\x9b2J", "\\u009b2J"),
        ("admin\u202egnp.exe", "admin\\u202egnp.exe"),
        ("half of a pair \ud800", "half of a pair \\ud800"),
    ],
)
def test_characters_that_move_the_cursor_or_hide_text_are_escaped(text: str, said: str) -> None:
    assert escaped(text) == said


@given(st.text())
def test_escaped_json_keeps_its_value(text: str) -> None:
    assert json.loads(escaped(json.dumps({text: text}, ensure_ascii=False))) == {text: text}
