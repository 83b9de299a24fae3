"""Test vectors that the web app's `escapeInvisible` and the one of core share."""

import json
import re
import unicodedata
from pathlib import Path
from unicodedata import category

from interlock.core.card import _MARKED_SCRIPTS, _script, escape_invisible

VECTORS = Path(__file__).parents[2] / "ui/src/components/escapeInvisible.vectors.json"
USED_BY_MANY = (
    "COMBINING",
    "VEDIC",
    "VARIATION",
    "MONGOLIAN",
    "KHITAN",
)  # the last three choose or fill: always escaped


# R53
def test_the_vectors_of_the_page_say_what_the_card_says() -> None:
    pairs = json.loads(VECTORS.read_text())
    assert len(pairs) > 150
    assert [(text, escape_invisible(text)) for text, _ in pairs] == [(text, shown) for text, shown in pairs]


def test_the_page_knows_the_same_scripts() -> None:
    source = VECTORS.with_name("escapeInvisible.ts").read_text()
    table = source.split("const MARKED_SCRIPTS =")[1].split(";\nconst")[0]
    assert "".join(re.findall(r'"(.*?)"', table)) == _MARKED_SCRIPTS


def test_every_mark_of_a_script_is_known_to_belong_to_its_letters() -> None:
    """By the names of Unicode: KHMER SIGN COENG is for KHMER LETTER KA."""
    letters: dict[str, set[int]] = {}
    marks: dict[str, set[int]] = {}
    for ch in map(chr, range(0x300, 0x110000)):
        script = unicodedata.name(ch, "").split(" ")[0]
        if category(ch) in ("Lo", "Lu", "Ll"):
            letters.setdefault(script, set()).add(_script(ch))
        elif category(ch)[0] == "M" and script not in USED_BY_MANY:
            marks.setdefault(script, set()).add(_script(ch))
    assert len(marks) > 80
    for script, numbers in marks.items():
        assert 0 not in numbers, script
        assert numbers <= letters.get(script, numbers), script
