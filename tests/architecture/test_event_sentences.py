"""The web app has a sentence for every kind of event."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
EXPORTED = re.compile(
    r"^export (?:default )?(?:async )?(?:function|const|class|type|interface|enum) (\w+)", re.MULTILINE
)
SENTENCES = REPOSITORY / "ui/src/pages/history/sentences.ts"
# Where the kind stands among the arguments of what makes an event; a line of a thread becomes `thread_KIND`.
EVENT_MAKERS = {
    "Event": (0, ""),
    "_event": (0, ""),
    "delivery_event": (0, ""),
    "make_change": (1, ""),
    "NewThreadEntry": (0, "thread_"),
}
BY_STATUS = {"succeeded", "failed"}  # the kind is the status that a run ended with


def test_every_kind_of_event_has_a_sentence_on_the_page() -> None:
    told = set(re.findall(r"^  (\w+): \(", SENTENCES.read_text(), re.MULTILINE))
    made = {kind for path in (REPOSITORY / "src/interlock").rglob("*.py") for kind in kinds_in(path)} | BY_STATUS
    assert len(made) > 50
    assert made - told == set()
    assert told - made == set(), "nothing makes these any more"


def kinds_in(path: Path) -> Iterator[str]:
    text = path.read_text()
    if not any(f"{maker}(" in text for maker in EVENT_MAKERS):  # most modules need not be parsed for it
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in EVENT_MAKERS:
            place, prefix = EVENT_MAKERS[node.func.id]
            if len(node.args) > place and isinstance(node.args[place], ast.Constant):
                yield f"{prefix}{ast.literal_eval(node.args[place])}"


def test_no_exported_name_of_the_web_app_is_used_twice() -> None:
    """But in the catalogues of texts, which are imported as a whole: `messages.cancel` is that of its area."""
    places: dict[str, list[str]] = {}
    for path in sorted((REPOSITORY / "ui/src").rglob("*.ts*")):
        if ".test." not in path.name and path.name != "schema.d.ts" and not path.stem.lower().endswith("messages"):
            for name in EXPORTED.findall(path.read_text()):
                places.setdefault(name, []).append(path.name)
    assert places, "the page exports nothing"
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
