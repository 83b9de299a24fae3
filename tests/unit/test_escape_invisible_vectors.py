"""Test vectors that the web app's `escapeInvisible` and the one of core share."""

import json
from pathlib import Path

from interlock.core.card import escape_invisible

VECTORS = Path(__file__).parents[2] / "ui/src/components/escapeInvisible.vectors.json"


# R53
def test_the_vectors_of_the_page_say_what_the_card_says() -> None:
    pairs = json.loads(VECTORS.read_text())
    assert len(pairs) > 150
    assert [(text, escape_invisible(text)) for text, _ in pairs] == [(text, shown) for text, shown in pairs]
