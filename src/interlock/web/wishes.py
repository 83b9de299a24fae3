"""The calls of a reply, for those who read a thread."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from interlock.core.call import ToolSpec, redact
from interlock.core.canonical import canonical_args, parse
from interlock.core.errors import InvalidRequest


class Wishes:
    """Calls as the model wrote them, with what is secret in them hidden as on a card."""

    def __init__(self, specs: Mapping[str, ToolSpec], key: bytes) -> None:
        self._specs = specs
        self._key = key

    def shown(self, wish: tuple[str, str, str]) -> dict[str, object]:
        call_id, tool, text = wish
        spec = self._specs.get(tool) or ToolSpec("unknown")
        return {"id": call_id, "name": tool, "args": self._args(text, spec)}

    def _args(self, text: str, spec: ToolSpec) -> object:
        """Of what is no object nobody can tell what is secret in it; nothing of it ran."""
        with suppress(InvalidRequest):
            value = parse(text or "{}")
            if isinstance(value, dict):
                return redact(canonical_args(value), spec, self._key).value
        return None if spec.secret else text
