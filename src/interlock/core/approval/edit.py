"""What an edit changed, as people read it. The ledger keeps it as content, so it is erased with the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.core.call import RedactedArgs
from interlock.core.card import CardField, Finding, head_and_tail, make_card, visible
from interlock.core.errors import InvalidRequest, Problem

MAX_CHANGES = 50  # changes that are kept one by one; the rest is a number
MAX_VALUE_LENGTH = 400  # characters of a value


def args_diff(old: RedactedArgs, new: RedactedArgs) -> dict[str, object]:
    """Each argument that was added, removed or has another value; None where it is not there."""
    before, after = _leaves(old), _leaves(new)
    changed = [
        {"name": visible(pointer), "before": before.get(pointer), "after": after.get(pointer)}
        for pointer in {**before, **after}
        if before.get(pointer) != after.get(pointer)
    ]
    cut = [{name: _shorten(text) for name, text in change.items()} for change in changed[:MAX_CHANGES]]
    return {"changes": cut, "changed": len(changed)}


def _leaves(shown: RedactedArgs) -> Mapping[str, str]:
    """By pointer; what only holds other values is its members."""
    card = make_card(
        tool="", sentence="", risk="", facts=(), args=shown.value, findings=(), secrets=frozenset(shown.secrets)
    )
    return {field.pointer: _field_text(field) for field in card.fields if field.text}


def _field_text(field: CardField) -> str:
    """A long text that differs in the middle differs by its digest."""
    return f"{field.text} ({field.length:,} characters, sha256 {field.sha256[:16]})" if field.sha256 else field.text


def _shorten(text: str | None) -> str | None:
    if text is None:
        return None
    head, tail = head_and_tail(text, MAX_VALUE_LENGTH)
    return f"{head} … {tail}" if tail else head


def schema_findings(problems: Sequence[Problem]) -> tuple[Finding, ...]:
    """One alarm for each place; unlike other alarms these cannot be acknowledged, only edited away."""
    by_place: dict[str, list[str]] = {}
    for problem in problems:
        by_place.setdefault(problem.pointer, []).append(visible(problem.message))
    return tuple(
        Finding(f"misfit:{pointer}", "misfit", "alarm", pointer, f"Does not fit the tool: {'; '.join(messages)}.")
        for pointer, messages in by_place.items()
    )


def schema_error(problems: Sequence[Problem]) -> InvalidRequest:
    """What a program is told whose arguments do not fit."""
    listed = "; ".join(map(str, problems))
    places = [{"pointer": p.pointer, "message": p.message} for p in problems]
    return InvalidRequest(f"The arguments do not fit the tool's schema: {listed}.", problems=places)
