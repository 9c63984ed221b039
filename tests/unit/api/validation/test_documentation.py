"""docs/validation.md matches the code."""

from pathlib import Path

from dynamo_shared.api.validation.check import REFUSING, WARNING

from tools.generate.validation import text

PAGE = Path(__file__).parents[4] / "docs" / "validation.md"


def test_the_page_is_generated_from_the_rules() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "run make generate"


def test_every_rule_and_message_is_on_the_page() -> None:
    page = text()
    for rule_set in (*REFUSING, *WARNING):
        for rule in rule_set.rules:
            assert rule.about in page
            assert all(message in page for message in rule.says)
