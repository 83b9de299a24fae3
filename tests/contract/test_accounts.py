"""Who is let in, on both databases: keys, people, passwords, sessions, one-time links."""

from __future__ import annotations

import json

import pytest

from interlock.accounts import SESSION
from interlock.core.errors import Unauthenticated
from interlock.core.identity import Principal
from interlock.wiring import Parts
from tests.support import START, Clock, faults, kinds

PASSWORD = "correct horse battery"
HOUR = 3_600_000


async def told(parts: Parts, kind: str) -> list[tuple[str, dict[str, object], dict[str, object] | None]]:
    """Actor, data and content of every event of a kind."""
    return [
        (entry.actor, json.loads(entry.data), None if entry.content is None else json.loads(entry.content))
        async for chunk in parts.store.entries("default")
        for entry in chunk
        if entry.kind == kind
    ]


async def refused(parts: Parts, token: str) -> bool:
    try:
        await parts.accounts.by_session(token)
    except Unauthenticated:
        return True
    return False


async def test_a_key_lets_its_agent_in_until_it_is_revoked(parts: Parts) -> None:
    key, secret = await parts.accounts.create_key("default", "office", "agent", "ada")
    assert secret.startswith(f"{key.id}_")
    assert (len(key.id), len(secret)) == (12, 56)
    who = await parts.accounts.by_key(secret)
    assert who == Principal("default", "office", "agent", frozenset(), "key", key.id)
    assert who.actor == "agent:office"
    revoked = await parts.accounts.revoke_key("default", key.id, "bob")
    assert revoked.revoked_at == START
    with pytest.raises(Unauthenticated):
        await parts.accounts.by_key(secret)
    again = await parts.accounts.revoke_key("default", key.id, "eve")
    assert again.revoked_at == revoked.revoked_at
    assert [kind for kind in await kinds(parts) if kind.startswith("key")] == ["key_created", "key_revoked"]
    assert await faults(parts) == []


async def test_a_session_lasts_until_it_is_ended(parts: Parts, clock: Clock) -> None:
    await parts.accounts.add_user("default", "bob", "reviewer", "ada", frozenset({"finance"}))
    await parts.accounts.set_password("default", "bob", PASSWORD, "ada")
    who, token = await parts.accounts.sign_in("default", "bob", PASSWORD)
    assert (who.name, who.role, who.teams, who.via) == ("bob", "reviewer", frozenset({"finance"}), "web")
    assert await parts.accounts.by_session(token) == who
    _, other = await parts.accounts.sign_in("default", "bob", PASSWORD)
    await parts.accounts.sign_out(token)
    assert await refused(parts, token)
    assert await parts.accounts.by_session(other)
    clock.forward(SESSION)
    assert await refused(parts, other)
