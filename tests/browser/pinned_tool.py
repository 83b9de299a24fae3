"""Calls of tools that an admin has pinned: their titles can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.browser.site import Site

Schema = dict[str, Any]


def object_schema(properties: Schema, *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def propose_pinned(site: Site, tool: str, args: Mapping[str, Any], schema: Schema, **more: Any) -> str:
    """The id of an approval of a call of a pinned tool."""
    agent = site.agent()
    effect = more.pop("effect", "write")
    site.propose(agent, tool, args, schema=schema, effect=effect)
    answer = site.admin.post("/api/pins", json={"tool": tool, "effect": effect})
    assert answer.status_code == 201, answer.text
    return site.propose(agent, tool, args, schema=schema, effect=effect, **more)
