"""The server of the chat journeys: its configuration, and how it is started with people, agents and models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.databases import Database
from tests.fakes.model_server import ModelServer
from tests.interlock_server import create_keys, run_server
from tests.journeys.chat_client import ChatServer, ChatUser

POLICY = """\
  version: 1
  defaults: {expires_in: 10m, undo_window: 0s}
  rules:
    - {name: reads are free, effect: read, then: allow}
    - {name: sections are theirs, tools: [cms_delete_sections], then: ask, exclude: [requester]}
"""
RULE = """\
    - name: those that begin with {word}
      tools: [okr_create_objective]
      when: args.title.startsWith("{word} ")
"""
RULES = {
    "Free": {"then": "allow"},
    "Never": {"then": "deny", "reason": "Not this one."},
    "Quick": {"then": "ask", "expires_in": "1s"},
    "Theirs": {"then": "ask", "exclude": "[requester]"},
    "Undo": {"then": "ask", "undo_window": "1h"},
}
AGENT = """\
  {name}:
    model: {model}
    tools: ["*"]
    agents: [{name}_strict, {name}_loose]
    tool_approvals: {{okr_update_objective: false}}
  {name}_strict:
    model: {model}
    tools: [okr, cms]
    tool_approvals: {{okr_update_objective: true}}
  {name}_loose:
    model: {model}
    tools: [linear, okr, cms]
    tool_approvals: {{linear_create_issue: false, cms_delete_page: false, okr_create_objective: false}}
"""
MODELS = {"openai": "openai:any", "anthropic": "anthropic:any", "scripted": "demo:scripted"}


def configuration(models: str) -> str:
    agents = "".join(AGENT.format(name=name, model=model) for name, model in MODELS.items())
    known = f"  openai: {{url: {models}/v1, key: sk-none}}\n  anthropic: {{url: {models}, key: sk-none}}\n"
    return f"models:\n{known}policy:\n{policy()}agents:\n{agents}"


def policy() -> str:
    """How the title of an objective begins says what happens to it."""
    rules = [
        RULE.format(word=word) + "".join(f"      {name}: {value}\n" for name, value in terms.items())
        for word, terms in RULES.items()
    ]
    return POLICY + "".join(rules)


@contextmanager
def run_chat_server(
    database: Database, folder: Path, models: ModelServer, *options: str, more: str = ""
) -> Iterator[ChatServer]:
    """A server on a database that is ready, in a process of its own. Bob chats, ada is an admin."""
    (folder / "interlock.yaml").write_text(configuration(models.url) + more)
    keys = asyncio.run(create_keys(database.url))
    with ExitStack() as stack:
        served = stack.enter_context(run_server(database.url, folder, "--demo", *options))
        bob, ada = (ChatUser(stack.enter_context(served.client(keys[role]))) for role in ("reviewer", "admin"))
        yield ChatServer(database, folder, served, models, bob, ada, keys)
