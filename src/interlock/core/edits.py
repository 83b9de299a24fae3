"""What an edit changed, as people read it. The ledger keeps it as content, so it is erased with the call."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.call import Shown
from interlock.core.card import Field, head_and_tail, make_card, visible

MOST = 50  # changes that are kept one by one; the rest is a number
LONGEST = 400  # characters of a value


def changes_of(old: Shown, new: Shown) -> dict[str, object]:
    """Each argument that was added, removed or has another value; None where it is not there."""
    before, after = _leaves(old), _leaves(new)
    changed = [
        {"name": visible(pointer), "before": before.get(pointer), "after": after.get(pointer)}
        for pointer in {**before, **after}
        if before.get(pointer) != after.get(pointer)
    ]
    cut = [{name: _short(text) for name, text in change.items()} for change in changed[:MOST]]
    return {"changes": cut, "changed": len(changed)}


def _leaves(shown: Shown) -> Mapping[str, str]:
    """By pointer; what only holds other values is its members."""
    card = make_card(
        tool="", sentence="", risk="", facts=(), args=shown.value, findings=(), secrets=frozenset(shown.secrets)
    )
    return {field.pointer: _told(field) for field in card.fields if field.text}


def _told(field: Field) -> str:
    """A long text that differs in the middle differs by its digest."""
    return f"{field.text} ({field.length:,} characters, sha256 {field.sha256[:16]})" if field.sha256 else field.text


def _short(text: str | None) -> str | None:
    if text is None:
        return None
    head, tail = head_and_tail(text, LONGEST)
    return f"{head} … {tail}" if tail else head
