"""Helpers for the tests of accounts: users with passwords, and events about accounts."""

from __future__ import annotations

import json

from interlock.accounts.accounts import (
    Accounts,
)
from interlock.app.bootstrap import AppServices
from interlock.core.errors import Unauthenticated

PASSWORD = "correct horse battery"
EventFields = tuple[str, dict[str, object], dict[str, object] | None]


async def events_of_kind(services: AppServices, kind: str) -> list[EventFields]:
    """Actor, data and content of every event of a kind."""
    return [
        (entry.actor, json.loads(entry.data), None if entry.content is None else json.loads(entry.content))
        async for chunk in services.store.entries("default")
        for entry in chunk
        if entry.kind == kind
    ]


async def add_user_with_password(services: AppServices, name: str = "bob", role: str = "reviewer") -> None:
    await services.accounts.add_user("default", name, role, "ada", frozenset({"finance"}))
    await services.accounts.set_password("default", name, PASSWORD, "ada")


async def is_accepted(accounts: Accounts, secret: str) -> bool:
    """Whether a key or a session's token counts."""
    try:
        await (accounts.authenticate_key if secret.startswith("ilk_") else accounts.authenticate_session)(secret)
    except Unauthenticated:
        return False
    return True
