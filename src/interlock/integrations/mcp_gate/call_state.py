"""Which call is meant when one comes again: by a sealed state, or by counting the same calls of a run."""

from __future__ import annotations

import base64
import hmac
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from interlock.core.canonical import canonical, digest, parse_json
from interlock.core.errors import InvalidRequest

STATE_PREFIX = "interlock1."


@dataclass(frozen=True, slots=True)
class CallState:
    """Goes to the client and comes back. `carried` is what the server below wants to have back with this call."""

    approval_id: str
    run_id: str
    call_id: str
    tool: str
    args_sha256: str
    rounds: int = 0
    carried: dict[str, Any] = field(default_factory=dict)

    def next(self) -> CallState:
        return replace(self, rounds=self.rounds + 1)


def is_sealed(state: object) -> bool:
    return isinstance(state, str) and state.startswith(STATE_PREFIX)


def seal(state: CallState, key: bytes) -> str:
    data = canonical(asdict(state))
    return f"{STATE_PREFIX}{_encode_base64(data)}.{_encode_base64(_sign(data, key))}"


def unseal(sealed: str, key: bytes, *, run_id: str, tool: str, args: bytes) -> CallState:
    """Raises InvalidRequest for one that is not of this gate, or belongs to another call."""
    body, _, signature = sealed.removeprefix(STATE_PREFIX).partition(".")
    try:
        data = _decode_base64(body)
        whole = hmac.compare_digest(_decode_base64(signature), _sign(data, key))
    except ValueError:
        whole = False
    if not whole:
        raise InvalidRequest("This requestState was not made by this gate. Nothing was run: call without it.")
    state = CallState(**parse_json(data))  # type: ignore[arg-type]  # what was sealed is what was made here
    if (state.run_id, state.tool, state.args_sha256) != (run_id, tool, digest(args)):
        raise InvalidRequest("This requestState belongs to another call. Nothing was run: call without it.")
    return state


class CallCounter:
    """The same call again is a new one as soon as the last one was answered for good; until then it is that one."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], int] = {}  # all before it are over
        self._over: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._held: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._met: set[tuple[str, str]] = set()

    def take(self, run_id: str, name: str) -> int:
        """The first that is neither over nor in somebody's hands just now."""
        key = run_id, name
        number = self._first.get(key, 1)
        while number in self._held[key] or number in self._over.get(key, ()):
            number += 1
        self._held[key].add(number)
        return number

    def leave(self, run_id: str, name: str, number: int, *, over: bool) -> None:
        key = run_id, name
        self._held[key].discard(number)
        if not self._held[key]:
            del self._held[key]
        if not over:
            return
        self._met.discard((run_id, f"{name}:{number}"))
        done, first = self._over[key], self._first.get(key, 1)
        done.add(number)
        while first in done:
            done.discard(first)
            first += 1
        self._first[key] = first
        if not done:
            del self._over[key]

    def meet(self, run_id: str, call_id: str) -> None:
        self._met.add((run_id, call_id))

    def has_met(self, run_id: str, call_id: str) -> bool:
        """Whether this process has seen it wait."""
        return (run_id, call_id) in self._met


def _sign(data: bytes, key: bytes) -> bytes:
    return hmac.new(key, b"mcp gate state\x00" + data, "sha256").digest()


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode_base64(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii", "replace") + b"=" * (-len(text) % 4), b"-_", validate=True)
