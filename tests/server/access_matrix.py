"""Every route of the OpenAPI document, called by every role with own, foreign and unknown ids.

What is expected is what the document says (`x-roles`). A route that is added is covered by itself; one with an id that
is not known here says so, and wants a line in `World.target`.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from interlock.app.bootstrap import AppServices
from interlock.core.chat import thread
from interlock.core.identity import IDENTITY_LINK_TTL, ROLES, IdentityLink, KeyBindings, sign_identity_link
from interlock.core.notify.delivery import DeliveryTarget, make_test_delivery, mark_dead
from interlock.notify.status import identity_id
from interlock.server.http import AsgiApp
from interlock.storage.tables.deliveries import ChannelIdentity
from tests.interlock_server import make_keys
from tests.server.asgi_request import HOST, Response, send_request

OURS, THEIRS = "default", "zebra"  # two workspaces; all that is in the second one is called by its name
PASSWORD = "correct horse battery"
PEOPLE = {"reviewer": "bob", "viewer": "vic", "admin": "ada"}
CHANNEL, THEIR_CHANNEL = "night-pager", f"{THEIRS}-pager"
OWNERS = ("own", "other", "unknown")
AGENT = "office"  # the agent that `owner` and `colleague` are bound to
KEYS = {  # keys of agents in our workspace, beside the unbound one that makes what is asked about
    "owner": KeyBindings((AGENT,)),
    "colleague": KeyBindings((AGENT,)),
    "stranger": KeyBindings(("night shift",)),
    "unbound": KeyBindings(),
}
AGENT_METHODS = ("colleague", "stranger", "unbound")
# Who proposed a call, and whose it is not.
STRANGERS = (("owner", "stranger"), ("owner", "unbound"), ("agent", "colleague"), ("agent", "unbound"))
NOTHING = "00000000-0000-7000-8000-000000000000"

# For everybody, signed in or not. Nothing else may be without roles.
PUBLIC = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/agent-inbox/info"),
    ("POST", "/api/session"),
    ("POST", "/api/session/link"),
    ("POST", "/api/session/link/inspect"),
    ("POST", "/api/links/inspect"),
    ("POST", "/api/links/code"),
    ("POST", "/api/links/session"),
    ("POST", "/channels/{name}/callback"),  # the channel itself proves who it is
    ("POST", "/channels/{workspace}/{name}/callback"),  # likewise
}

Json = dict[str, Any]


class Operation(NamedTuple):
    method: str
    template: str
    spec: Json

    @property
    def roles(self) -> frozenset[str] | None:
        return frozenset(self.spec["x-roles"]) if "x-roles" in self.spec else None

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"

    @property
    def has_id(self) -> bool:
        return "{" in self.template or self.name in NESTED_BODIES

    @property
    def is_stream(self) -> bool:
        return "text/event-stream" in self.spec.get("responses", {}).get("200", {}).get("content", {})


class Target(NamedTuple):
    """The subject of a request: the id in its path, and values of its body."""

    id: str = ""
    more: Mapping[str, Any] = {}


class Exchange(NamedTuple):
    """A request and its response; `changed` are the workspaces whose ledger grew."""

    response: Response
    target: Target
    changed: set[str]

    @property
    def plain(self) -> tuple[int, str]:
        """Without the id that was asked for, which is told back."""
        return self.response.status, self.response.text.replace(
            self.target.id, "ID"
        ) if self.target.id else self.response.text


def operations(document: Json) -> Iterator[Operation]:
    for template, methods in document["paths"].items():
        for method, spec in methods.items():
            yield Operation(method.upper(), template, spec)


@dataclass
class TwoWorkspaces:
    """Two workspaces with people, keys, calls and everything that routes are about."""

    services: AppServices
    app: AsgiApp  # under test
    real_app: AsgiApp  # makes what is asked about
    document: Json
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    maker: str = "agent"  # whose key proposes the calls and runs that are asked about

    async def create(self) -> None:
        for workspace in (OURS, THEIRS):
            self.keys[workspace] = await make_keys(self.services, workspace)
            await self.call(workspace)
            await paused(self, workspace, "")

    async def add_keys(self) -> None:
        for name, bindings in KEYS.items():
            _, self.keys[OURS][name] = await self.services.accounts.create_key(
                OURS, name, "agent", "test", "", bindings
            )

    async def headers(self, workspace: str, role: str) -> dict[str, str]:
        """Agents have keys. People have sessions, of which some routes end one: each is used once."""
        if role == "nobody":
            return {}
        if role == "agent" or role in KEYS:
            return {"authorization": f"Bearer {self.keys[workspace][role]}"}
        token = await self.services.accounts.create_link(workspace, "test", PEOPLE[role])
        _, session = await self.services.accounts.use_link(token)
        return {"cookie": f"interlock={session}", "origin": f"http://{HOST}"}

    async def call(self, workspace: str) -> Json:
        """A new one that waits for people."""
        mark = f"{THEIRS} {secrets.token_hex(4)}" if workspace == THEIRS else secrets.token_hex(4)
        body = {"tool": f"tool_{mark.replace(' ', '_')}", "args": {"path": mark}, "run_id": mark, "call_id": mark}
        return {**body, **await self.request_done(workspace, "agent", "POST", "/api/calls", body)}

    async def request_done(self, workspace: str, role: str, method: str, path: str, body: Json) -> Json:
        """By the real app, whatever the one under test is."""
        key = self.keys[workspace][self.maker if role == "agent" else role]
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        got = await send_request(self.real_app, method, path, headers, json.dumps(body).encode())
        if got.status == 401:  # a new password and signing out everywhere have ended it
            made = await self.services.accounts.create_key(workspace, f"{role} again", role, "test", PEOPLE[role])
            self.keys[workspace][role] = made[1]
            return await self.request_done(workspace, role, method, path, body)
        assert got.status in (200, 201), got.text
        told: Json = got.json()
        return told

    async def target(self, operation: Operation, place: str, role: str) -> Target:
        """Something new that this route is about, ours or theirs, or nothing at all."""
        made = await self._make(operation, THEIRS if place == "other" else OURS, role)
        return made if place != "unknown" else made._replace(id=unlike_id(made.id))

    async def _make(self, operation: Operation, workspace: str, role: str) -> Target:
        for prefix, make in MAKERS.items():
            if operation.template.startswith(prefix):
                return await make(self, workspace, role)
        if "{" in operation.template:
            raise AssertionError(f"{operation.name}: say in MAKERS what the id in its path is")
        return Target()


async def approval(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    told = await two_workspaces.call(workspace)
    return Target(told["approval_id"], {"args_sha256": told["args_sha256"]})


async def _person(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    name = workspace_name(workspace)
    await two_workspaces.services.accounts.add_user(workspace, name, "viewer", "test")
    return Target(name)


async def _key(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    key, _secret = await two_workspaces.services.accounts.create_key(
        workspace, workspace_name(workspace), "agent", "test"
    )
    return Target(key.id)


async def _own_key(two_workspaces: TwoWorkspaces, workspace: str, role: str) -> Target:
    person = PEOPLE.get(role, "ada")
    key, _secret = await two_workspaces.services.accounts.create_key(
        workspace, workspace_name(workspace), "viewer", "test", person
    )
    return Target(key.id)


async def _question(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """With a question to the agent."""
    target = await approval(two_workspaces, workspace, "")
    await two_workspaces.request_done(
        workspace, "reviewer", "POST", f"/api/approvals/{target.id}/ask", {"question": "Why?"}
    )
    return target


async def _run(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    told = await two_workspaces.request_done(workspace, "agent", "POST", "/api/runs", {"runner": "one"})
    return Target(told["run_id"])


async def paused(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """A run that is paused."""
    agent = workspace_name(workspace) if two_workspaces.maker == "agent" else AGENT
    body = {"run_id": workspace_name(workspace), "called": workspace_name(workspace), "agent": agent}
    told = await two_workspaces.request_done(workspace, "agent", "POST", "/api/pauses", body)
    return Target("", {"run_id": told["run_id"], "fence": told["fence"]})


async def _version(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """Of the policy: ours has few, theirs has more, so that there is a number that only they have."""
    told: Json = {"version": 0}
    while told["version"] < (1 if workspace == OURS else 100):
        policy = {"version": 1, "defaults": {"expires_in": f"{told['version'] + 300}s"}}
        told = await two_workspaces.request_done(workspace, "admin", "PUT", "/api/policy", policy)
    return Target(str(told["version"]))


async def _grant(two_workspaces: TwoWorkspaces, workspace: str, role: str) -> Target:
    """Made by whoever asks, if they may: others' are not theirs to revoke."""
    maker = role if role == "reviewer" else "admin"
    grant = {
        **(await _seen_tool(two_workspaces, workspace, "")).more,
        "expires_in": "1h",
        "reason": workspace_name(workspace),
    }
    return Target((await two_workspaces.request_done(workspace, maker, "POST", "/api/grants", grant))["id"])


async def _freeze(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """Of a tool that nobody calls: the world has to go on."""
    body = {"scope": "tool", "name": workspace_name(workspace), "reason": workspace_name(workspace)}
    return Target((await two_workspaces.request_done(workspace, "admin", "POST", "/api/freeze", body))["id"])


async def _seen_tool(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """A tool of which a call has been seen."""
    return Target("", {"tool": (await two_workspaces.call(workspace))["tool"]})


async def _pinned_tool(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    pin = {**(await _seen_tool(two_workspaces, workspace, "")).more, "effect": "write"}
    return Target((await two_workspaces.request_done(workspace, "admin", "POST", "/api/pins", pin))["tool"])


async def _declaring_agent(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """An agent that declared a tool."""
    name = workspace_name(workspace)
    body = {"tool": name, "args": {}, "run_id": name, "call_id": name, "agent": name, "effect": "write"}
    await two_workspaces.request_done(workspace, "agent", "POST", "/api/calls", body)
    return Target("", {"agent": name})


async def _tool(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    return Target((await two_workspaces.call(workspace))["tool"])


async def _agent(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    name = workspace_name(workspace)
    await two_workspaces.request_done(
        workspace, "admin", "PUT", f"/api/agents/{quote(name)}", {"tool_approvals": {name: True}}
    )
    return Target(name)


async def request_to_decide(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    body = {
        "requestId": str(uuid4()),
        "actionType": "config_update",
        "payload": {"key": workspace_name(workspace), "value": "1"},
    }
    await two_workspaces.request_done(workspace, "agent", "POST", "/requests", body)
    return Target(body["requestId"])


async def _function_call(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """As a program with HumanLayer's SDK asks."""
    call_id = workspace_name(workspace)
    spec = {"fn": "pay", "kwargs": {"to": call_id}, "reject_options": [{"name": "later"}]}
    body = {"run_id": call_id, "call_id": call_id, "spec": spec}
    await two_workspaces.request_done(workspace, "agent", "POST", "/humanlayer/v1/function_calls", body)
    return Target(call_id)


async def _contact(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    call_id = workspace_name(workspace)
    body = {"run_id": call_id, "call_id": call_id, "spec": {"msg": f"Is it {call_id}?"}}
    await two_workspaces.request_done(workspace, "agent", "POST", "/humanlayer/v1/contact_requests", body)
    return Target(call_id)


async def _thread(two_workspaces: TwoWorkspaces, workspace: str, role: str) -> Target:
    """Of whoever asks, if they can have any."""
    thread_id = f"{thread.THREAD_ID_PREFIX}{uuid4()}"
    place = thread.ThreadOrigin(workspace, "assistant", PEOPLE.get(role, "ada"), ("assistant",))
    await two_workspaces.services.store.threads.add(
        workspace, thread_id, lambda moment: thread.open_thread(thread_id, place, workspace_name(workspace), moment)
    )
    return Target(thread_id)


async def _chat(_world: TwoWorkspaces, workspace: str, _: str) -> Target:
    """A name that somebody gave it: everybody may use any, for threads of their own."""
    return Target(workspace_name(workspace))


async def _password(two_workspaces: TwoWorkspaces, workspace: str, role: str) -> Target:
    if role in PEOPLE:
        await two_workspaces.services.accounts.set_password(workspace, PEOPLE[role], PASSWORD, "test")
    return Target()


async def _delivery(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """That was given up; theirs is to somebody whose name would show."""
    way, now = DeliveryTarget(CHANNEL, "", workspace_name(workspace)), two_workspaces.services.clock()
    made = make_test_delivery(workspace, str(uuid4()), way, "test", now)
    await two_workspaces.services.store.deliveries.add(mark_dead(made, workspace_name(workspace)))
    return Target(made.id)


async def _identity(two_workspaces: TwoWorkspaces, workspace: str, role: str) -> Target:
    """Of whoever asks, if they can have any."""
    bound = ChannelIdentity(CHANNEL, workspace_name(workspace), PEOPLE.get(role, "ada"), 0)
    await two_workspaces.services.store.deliveries.bind(
        workspace, bound.channel, bound.external_id, bound.person, "test"
    )
    return Target(identity_id(bound))


async def _claim(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
    """A link that was made there; only its own workspace takes it."""
    claim = IdentityLink(CHANNEL, workspace_name(workspace), two_workspaces.services.clock() + IDENTITY_LINK_TTL)
    return Target(
        "", {"link": sign_identity_link(await two_workspaces.services.store.secret_key(workspace), workspace, claim)}
    )


async def _channel(_world: TwoWorkspaces, workspace: str, _: str) -> Target:
    """Each workspace has one of its own; there is nobody at its other end."""
    return Target(CHANNEL if workspace == OURS else THEIR_CHANNEL)


ITEMS: dict[str, Json] = {
    "post": {"status": "draft", "body": ""},
    "page": {"status": "draft", "sections": []},
    "image": {"name": "x.jpg", "alt": ""},
    "objective": {"description": "", "quarter": "2027-Q1", "status": "on_track"},
    "key_result": {"objective_id": "O-0", "current": 0, "target": 1, "unit": ""},
}


def _item(kind: str) -> Maker:
    """An item of a tool pack, whose id no other workspace has."""

    async def make(two_workspaces: TwoWorkspaces, workspace: str, _: str) -> Target:
        name = workspace_name(workspace)
        body = {"title": name, **ITEMS[kind]}
        await two_workspaces.services.store.tool_items(workspace).change("", lambda items: items.put(kind, name, body))
        return Target(name)

    return make


Maker = Callable[[TwoWorkspaces, str, str], Awaitable[Target]]
MAKERS: dict[str, Maker] = {
    "/api/calls/{approval_id}/answer": _question,
    "/api/calls/{": approval,
    "/api/approvals/{": approval,
    "/api/approvals/bulk": approval,
    "/api/runs/{": _run,
    "/api/pauses": paused,
    "/api/users/{": _person,
    "/api/me/keys/{": _own_key,
    "/api/me/password": _password,
    "/api/keys/{": _key,
    "/api/policy/versions/{": _version,
    "/api/threads/{": _thread,
    "/api/chat/approve": approval,
    "/api/agent/approve": approval,
    "/api/chat": _thread,
    "/api/grants/{": _grant,
    "/api/freeze/{": _freeze,
    "/api/content/posts/{": _item("post"),
    "/api/content/pages/{": _item("page"),
    "/api/content/images/{": _item("image"),
    "/api/objectives/{": _item("objective"),
    "/api/key-results/{": _item("key_result"),
    "/api/grants": _seen_tool,
    "/api/agents/{": _agent,
    "/api/tools/{": _tool,
    "/api/pins/{": _pinned_tool,
    "/api/pins/all": _declaring_agent,
    "/api/pins": _seen_tool,
    "/api/channels/{": _channel,
    "/api/deliveries": _delivery,
    "/api/me/identities/{": _identity,
    "/api/me/identities": _claim,
    "/api/identities": _identity,
    "/channels/{": _channel,
    "/ag-ui/{": _agent,
    "/resume/{": request_to_decide,
    "/submit": request_to_decide,
    "/agent-inbox/threads/{": approval,
    "/humanlayer/v1/function_calls/{": _function_call,
    "/humanlayer/v1/agent/function_calls/{": _function_call,
    "/humanlayer/v1/contact_requests/{": _contact,
    "/humanlayer/v1/agent/human_contacts/{": _contact,
    "/ai-sdk/chat/{": _chat,
}

# Bodies for which the document's own words are not enough.
BODIES: dict[str, Json | Callable[[Target], Json]] = {
    "POST /api/approvals/bulk": lambda target: {"decisions": [decision(target)]},
    "POST /api/chat": lambda target: {"message": "hello", "thread_id": target.id},
    "POST /api/chat/approve": lambda target: {"approvalId": target.id, "approved": True},
    "POST /api/agent/approve": lambda target: {"approvalId": target.id, "approved": True},
    "POST /submit": lambda target: {"requestId": target.id, "decision": "approved"},
    "POST /requests": lambda _: {"requestId": str(uuid4()), "actionType": "send", "payload": {"a": 1}},
    "PUT /api/policy": {"version": 1},
    "PUT /api/agents/{name}": {"tool_approvals": {"send": True}},
    "POST /api/policy/check": {"version": 1},
    "POST /api/policy/explain": {"tool": "send", "args": {}},
    "POST /api/policy/rehearse": {"version": 1},
    "POST /api/grants": lambda target: {**target.more, "expires_in": "1h", "reason": "often"},
    "POST /api/pins": lambda target: {**target.more, "effect": "write"},
    "POST /api/pins/all": lambda target: dict(target.more),
    "POST /api/me/identities": lambda target: dict(target.more),
    "POST /api/me/identities/look": lambda target: dict(target.more),
    "PUT /api/me/password": {"old": PASSWORD, "new": PASSWORD},
    "PUT /api/users/{name}/away": {"until": None},
    "PUT /api/me/away": {"until": None},
    "POST /api/calls": {"tool": "send", "args": {}, "run_id": "run", "call_id": "call"},
    "POST /api/calls/{approval_id}/start": {},
    "POST /api/calls/{approval_id}/renew": {"fence": 1},
    "POST /api/calls/{approval_id}/finish": {"fence": 1, "ok": True},
    "POST /api/calls/{approval_id}/abandon": {"fence": 1},
    "POST /api/runs": {},
    "POST /api/runs/{run_id}/renew": {"runner": "one"},
    "POST /api/runs/{run_id}/close": {"runner": "one"},
    "POST /api/runs/{run_id}/release": {"runner": "one"},
    "POST /api/pauses": {"run_id": "run"},
    "POST /api/pauses/claim": {},
    "POST /api/pauses/renew": lambda target: dict(target.more),
    "POST /api/pauses/release": lambda target: dict(target.more),
    "POST /api/pauses/complete": lambda target: dict(target.more),
    "POST /api/approvals/{approval_id}/delegate": {"users": ["ada"]},
    "POST /api/approvals/{approval_id}/decision": lambda target: {"kind": "approve", **target.more},
}

# The id is in the body.
NESTED_BODIES = {"POST /submit", "POST /api/chat", "POST /api/chat/approve", "POST /api/agent/approve"}
# Whoever asks may choose the name, so that one that is taken elsewhere is as free as any other; or it is everybody's.
OPEN_ROUTES = {
    *("PUT /api/agents/{name}", "GET /ai-sdk/chat/{chat_id}", "GET /ai-sdk/chat/{chat_id}/stream"),
}
# What somebody who may ask can hear although the request is right, and why.
ALLOWED_ROLES: dict[str, set[int]] = {
    "POST /api/channels/{name}/test": {502},  # nobody is at its other end
}


def decision(target: Target) -> Json:
    return {"id": target.id, "kind": "approve", **target.more}


def workspace_name(workspace: str) -> str:
    return f"{THEIRS if workspace == THEIRS else 'one'} {secrets.token_hex(4)}"


def unlike_id(identity: str) -> str:
    """Of the same shape, and nobody's."""
    if re.fullmatch(r"[0-9a-f-]{36}", identity):
        return NOTHING
    if identity.isdigit():
        return "999999"
    if identity.startswith(thread.THREAD_ID_PREFIX):
        return f"{thread.THREAD_ID_PREFIX}{NOTHING}"
    return identity[:-8] + "zzzzzzzz" if identity else ""


async def refusals(two_workspaces: TwoWorkspaces, operation: Operation) -> AsyncGenerator[str, None]:
    """What is wrong with how a route refuses those whom it is not for."""
    if operation.roles is None:
        if (operation.method, operation.template) not in PUBLIC:
            yield f"{operation.name}: for whom is it?"
        return
    for role in ("nobody", *ROLES):
        if role not in operation.roles:
            expected = (401, "unauthenticated") if role == "nobody" else (403, "forbidden")
            answers = [await request(two_workspaces, operation, role, place) for place in OWNERS]
            for problem in find_differences(operation, role, answers, expected):
                yield problem


async def permissions(two_workspaces: TwoWorkspaces, operation: Operation) -> AsyncGenerator[str, None]:
    """What is wrong with how a route serves those whom it is for: with theirs, and with what is not theirs."""
    for role in sorted(operation.roles or ("nobody", *ROLES)):
        asked = await request(two_workspaces, operation, role, "own")
        if not is_served(operation, asked.response):
            yield f"{operation.name} as {role}: {asked.response.status} {asked.response.text[:200]}"
        if THEIRS in asked.response.text or THEIRS in str(asked.response.headers):
            yield f"{operation.name} as {role} shows what is of another workspace: {asked.response.text[:200]}"
        if THEIRS in asked.changed:
            yield f"{operation.name} as {role} changes another workspace"
        if operation.has_id and operation.name not in OPEN_ROUTES:
            answers = [await request(two_workspaces, operation, role, place) for place in OWNERS[1:]]
            for problem in find_differences(operation, role, answers, (404, "not_found")):
                yield problem


async def ownership(two_workspaces: TwoWorkspaces, operation: Operation) -> AsyncGenerator[str, None]:
    """What is wrong with how a route treats keys of agents: of the agent whose call it is, of another one, of none."""
    if operation.roles is None:
        return
    if "agent" not in operation.roles:
        target = await two_workspaces.target(operation, "own", "agent")
        answers = [await request_about(two_workspaces, operation, key, target) for key in AGENT_METHODS]
        for problem in find_differences(operation, "any agent", answers, (403, "forbidden")):
            yield problem
        return
    for key in ("colleague",) if operation.has_id else AGENT_METHODS:
        asked = await request(replace(two_workspaces, maker="owner"), operation, key, "own")
        if not is_served(operation, asked.response):
            yield f"{operation.name} as {key}: {asked.response.status} {asked.response.text[:200]}"
    for maker, key in STRANGERS if operation.has_id else ():
        made_by = replace(two_workspaces, maker=maker)
        answers = [await request(made_by, operation, key, place) for place in ("own", "unknown")]
        for problem in find_differences(operation, f"{key}, made by {maker}", answers, (404, "not_found")):
            yield problem


def find_differences(operation: Operation, role: str, answers: list[Exchange], expected: tuple[int, str]) -> list[str]:
    """All of them are to be refused alike, and to change nothing."""
    wrong = []
    found = {(each.response.status, each.response.error_code) for each in answers}
    if found != {expected}:
        wrong.append(f"{operation.name} as {role}: {sorted(found)}, not {expected}")
    if len({each.plain for each in answers}) > 1:
        wrong.append(f"{operation.name} as {role}: the answer tells what is there")
    if any(each.changed for each in answers):
        wrong.append(f"{operation.name} as {role}: refused, and yet something changed")
    return wrong


def is_served(operation: Operation, got: Response) -> bool:
    if got.status in ALLOWED_ROLES.get(operation.name, ()):
        return True
    if (operation.method, operation.template) in PUBLIC:
        return got.status < 500
    return got.status < 400 or got.status in (409, 410, 422)


async def request(two_workspaces: TwoWorkspaces, operation: Operation, role: str, place: str) -> Exchange:
    return await request_about(two_workspaces, operation, role, await two_workspaces.target(operation, place, role))


async def request_about(two_workspaces: TwoWorkspaces, operation: Operation, role: str, target: Target) -> Exchange:
    headers, body = await two_workspaces.headers(OURS, role), body_of(two_workspaces.document, operation, target)
    if body is not None:
        headers["content-type"] = "application/json"
    if operation.is_stream:
        headers["last-event-id"] = "0"
    path = fill_path(operation, target)
    before = {workspace: await two_workspaces.services.store.head(workspace) for workspace in (OURS, THEIRS)}
    got = await send_request(two_workspaces.app, operation.method, path, headers, body or b"")
    changed = {
        workspace for workspace, head in before.items() if await two_workspaces.services.store.head(workspace) != head
    }
    return Exchange(got, target, changed)


async def allowed_exchanges(
    two_workspaces: TwoWorkspaces, methods: tuple[str, ...]
) -> list[tuple[Operation, str, Target]]:
    """Every route with one of these methods, somebody who may use it, and something that it is about."""
    found = []
    for operation in operations(two_workspaces.document):
        if operation.method in methods and operation.roles is not None:
            role = max(operation.roles)
            found.append((operation, role, await two_workspaces.target(operation, "own", role)))
    return found


def fill_path(operation: Operation, target: Target) -> str:
    return re.sub(r"\{[^}]*\}", quote(target.id, safe=""), operation.template)


@asynccontextmanager
async def assert_nothing_changes(two_workspaces: TwoWorkspaces) -> AsyncIterator[None]:
    """Nothing is kept but that somebody tried to decide."""
    before = await two_workspaces.services.store.head(OURS)
    yield
    if await two_workspaces.services.store.head(OURS) != before:
        kept = [entry.kind async for some in two_workspaces.services.store.entries(OURS, before.seq) for entry in some]
        assert set(kept) == {"decision_refused"}


def body_of(document: Json, operation: Operation, target: Target) -> bytes | None:
    given = operation.spec.get("requestBody")
    if given is None and operation.name not in BODIES:
        return None
    content = (given or {}).get("content", {}).get("application/json", {})
    value = BODIES[operation.name] if operation.name in BODIES else example(document, content)
    return json.dumps(value(target) if callable(value) else value).encode()


def example(document: Json, content: Json) -> Any:
    """As the document gives one, or the least that its schema asks for."""
    if "example" in content:
        return content["example"]
    if "examples" in content:
        return next(iter(content["examples"].values()))["value"]
    return smallest_example(document, content.get("schema", {}))


def smallest_example(document: Json, schema: Json) -> Any:
    if "$ref" in schema:
        return smallest_example(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if schema.get("examples"):
        return schema["examples"][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return smallest_example(document, schema[name][0])
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        return {name: smallest_example(document, properties.get(name, {})) for name in schema.get("required", ())}
    plain_values = {"string": f"a {secrets.token_hex(4)}", "integer": 1, "number": 1, "boolean": True, "array": []}
    return plain_values.get(schema.get("type", ""))
