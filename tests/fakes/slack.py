"""A fake of Slack, over real HTTP and WebSockets on loopback. Slack's own Block Kit schema decides what fits.

Each rule says where it is from: (documented) by Slack; (seen) in what Slack answers, as people quote it; (assumed)
ours, where neither says anything. People click here: what a click sends is shaped like the samples of Slack's Bolt.
"""

from __future__ import annotations

import asyncio
import copy
import hmac
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlencode

from aiohttp import WSMsgType, web

from tests.fakes.slack_validation import VENDOR, message_error, view_error

Json = dict[str, Any]
SAMPLES: Json = json.loads((VENDOR / "interactivity-payloads.json").read_text())
TEAM, BOT, APP, SECRET = "T1", "xoxb-of-the-test", "xapp-of-the-test", "signing-secret-of-the-test"
TICKET = "ticket-of-the-test"
READ_METHODS = ("auth.test", "users.info")
TIMEOUT = 30.0


class Refused(Exception):
    def __init__(self, code: str, status: int = 200, **headers: str) -> None:
        super().__init__(code)
        self.code, self.status = code, status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Request(NamedTuple):
    """What was asked, and what was said against it."""

    method: str
    body: Json
    refusal: str


class SignedRequest(NamedTuple):
    """A signed request, as Slack would send it to the app."""

    headers: Mapping[str, str]
    body: bytes


@dataclass
class Channel:
    id: str
    name: str
    members: set[str] = field(default_factory=lambda: {BOT})
    archived: bool = False


@dataclass
class OpenView:
    """A form that somebody has before them."""

    id: str
    user: str
    view: Json
    errors: Json = field(default_factory=dict)


class FakeSlack:
    """`clock` is Slack's own, in milliseconds. `trouble` answers the next requests in the place of Slack."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.url = ""
        self.users: dict[str, Json] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: dict[str, Json] = {}  # by ts
        self.ephemerals: list[Json] = []
        self.views: dict[str, OpenView] = {}
        self.requests: list[Request] = []
        self.failures: list[Refused] = []
        self.slow: asyncio.Event | None = None  # if there is one, users.info waits for it
        self.acks: dict[str, Json] = {}
        self.connections = 0
        self._triggers: dict[str, tuple[int, str]] = {}
        self._sockets: list[web.WebSocketResponse] = []
        self._count = 0
        self._changed = asyncio.Condition()

    # What is there

    def add_channel(self, name: str, *, joined: bool = True) -> Channel:
        room = Channel(f"C{len(self.channels) + 1}", name)
        self.channels[room.id] = room
        if not joined:
            room.members.clear()
        return room

    def add_user(self, name: str, email: str = "", **more: Any) -> str:
        """In the shape that users.info gives (documented)."""
        user_id = more.pop("id", f"U{len(self.users) + 1}")
        flags = dict.fromkeys(("is_bot", "deleted", "is_restricted", "is_ultra_restricted"), False)
        profile = {"display_name": name, **({"email": email} if email else {})}
        user = {"id": user_id, "team_id": TEAM, "name": name, "profile": profile, "is_email_confirmed": True, **flags}
        self.users[user_id] = {**user, **more}
        return str(user_id)

    @property
    def all_messages(self) -> list[Json]:
        """The messages, oldest first."""
        return list(self.messages.values())

    @property
    def refusals(self) -> list[str]:
        return [f"{each.method}: {each.refusal}" for each in self.requests if each.refusal]

    def bodies_sent_to(self, method: str) -> list[Json]:
        return [each.body for each in self.requests if each.method == method]

    # What people do

    def click(self, user: str, action: str, message: Json | None = None) -> Json:
        """The payload of a click on a button of the newest message, or of another."""
        message = message or self.all_messages[-1]
        button = next(each for each in buttons(message) if each["action_id"] == action)
        payload = copy.deepcopy(SAMPLES["block_actions:body"])
        shown = {key: button[key] for key in ("action_id", "text", "value", "type") if key in button}
        payload |= {
            "user": self._user(user),
            "team": {"id": TEAM, "domain": "testing"},
            "trigger_id": self._trigger(user),
            "channel": {"id": message["channel"], "name": self.channels[message["channel"]].name},
            "container": {"type": "message", "message_ts": message["ts"], "channel_id": message["channel"]},
            "actions": [{**shown, "block_id": "decide", "action_ts": self._ts()}],
            "response_url": f"{self.url}/response/unused",
        }
        return dict(payload)

    def submit(self, view_id: str, values: Mapping[str, object] | None = None, user: str = "") -> Json:
        """The payload of a form as it is sent off; what is not in `values`, by the label of its field, stays."""
        form = self.views[view_id]
        payload = copy.deepcopy(SAMPLES["view_submission:body"])
        who = user or form.user
        state = view_state(form.view, values)
        payload["view"] |= {**form.view, "id": view_id, "root_view_id": view_id, "state": {"values": state}}
        payload |= {"user": self._user(who), "team": {"id": TEAM}, "trigger_id": self._trigger(who)}
        return dict(payload)

    def handle_view_response(self, view_id: str, body: bytes) -> None:
        """What the app said to a form: nothing closes it, errors keep it open (documented)."""
        said = json.loads(body) if body else {}
        form = self.views[view_id]
        form.errors = {}
        if said.get("response_action") == "errors":
            inputs = {each.get("block_id") for each in form.view["blocks"] if each["type"] == "input"}
            assert set(said["errors"]) <= inputs, "errors name blocks that are inputs of the form (documented)"
            assert all(isinstance(each, str) and each for each in said["errors"].values())
            form.errors = said["errors"]
        else:
            assert not said, said
            del self.views[view_id]

    def sign(self, payload: Json, at: int | None = None, secret: str = SECRET) -> SignedRequest:
        """`at` is when Slack sent it, in seconds."""
        return sign(urlencode({"payload": json.dumps(payload)}).encode(), at or self.clock() // 1000, secret)

    async def deliver(self, payload: Json, envelope: str = "", kind: str = "interactive") -> Json:
        """Through the newest connection; gives the app's acknowledgement."""
        await self.wait_until(lambda: bool(self._sockets))
        envelope = envelope or f"e{self._next()}"
        self.acks.pop(envelope, None)
        await self._sockets[-1].send_json(
            {"envelope_id": envelope, "type": kind, "accepts_response_payload": True, "payload": payload}
        )
        await self.wait_until(lambda: envelope in self.acks)
        return self.acks[envelope]

    async def disconnect(self) -> None:
        """Slack refreshes connections every few hours, and says so before (documented)."""
        await self._sockets.pop().send_json({"type": "disconnect", "reason": "refresh_requested"})

    async def drop_connection(self) -> None:
        """Without a word."""
        await self._sockets.pop().close()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT), self._changed:
            await self._changed.wait_for(condition)

    # What is asked of it

    async def api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        body = await _read(request, method)
        refusal = ""
        try:
            if self.failures:
                raise self.failures.pop(0)
            self._authenticate(request, method)
            answer = await self._call(method, body)
        except Refused as refused:
            refusal = refused.code
            if refused.status != 200:
                return web.Response(status=refused.status, headers=refused.headers, text="refused")
            answer = {"ok": False, "error": refused.code}
        finally:
            self.requests.append(Request(method, body, refusal))
            await self._notify()
        return web.json_response({"ok": True, **answer}, headers={"x-slack-req-id": "r1"})

    async def socket(self, request: web.Request) -> web.StreamResponse:
        """One connection (documented): hello first, an acknowledgement for each envelope."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        self._sockets.append(socket)
        self.connections += 1
        await self._notify()
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                said = json.loads(message.data)
                self.acks[said["envelope_id"]] = said.get("payload", {})
                await self._notify()
        if socket in self._sockets:
            self._sockets.remove(socket)
        return socket

    async def _call(self, method: str, body: Json) -> Json:
        if method == "users.info" and self.slow is not None:
            await self.slow.wait()
        does: dict[str, Callable[[Json], Json]] = {
            "auth.test": lambda _: {"team_id": TEAM, "user_id": "UBOT", "bot_id": "B1"},
            "users.info": lambda asked: {"user": self._find_user(str(asked.get("user", "")))},
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.postEphemeral": self._post_ephemeral,
            "views.open": self._view,
            "apps.connections.open": lambda _: {"url": f"{self.url.replace('http', 'ws', 1)}/link?ticket={TICKET}"},
        }
        if method not in does:
            raise Refused("unknown_method")
        return does[method](body)

    def _authenticate(self, request: web.Request, method: str) -> None:
        """A token in the header (documented); which one depends on the method (documented)."""
        said = request.headers.get("authorization", "")
        if not said:
            raise Refused("not_authed")
        right = APP if method == "apps.connections.open" else BOT
        if said != f"Bearer {right}":
            raise Refused("not_allowed_token_type" if said in (f"Bearer {APP}", f"Bearer {BOT}") else "invalid_auth")

    def _post(self, body: Json) -> Json:
        room = self._find_channel(body.get("channel"))
        if why := message_error("ChatPostMessage", {k: v for k, v in body.items() if k != "reply_broadcast"}):
            raise Refused(why)
        if body.get("reply_broadcast") and "thread_ts" not in body:
            raise Refused("invalid_arguments")  # (assumed)
        if "thread_ts" in body and body["thread_ts"] not in self.messages:
            raise Refused("thread_not_found")  # (seen)
        ts = self._ts()
        self.messages[ts] = {**body, "channel": room.id, "ts": ts}
        return {"channel": room.id, "ts": ts, "message": self.messages[ts]}

    def _update(self, body: Json) -> Json:
        if not str(body.get("channel", "")).startswith("C"):
            raise Refused("channel_not_found")  # an id, not a name (documented)
        room = self._find_channel(body.get("channel"))
        message = self.messages.get(str(body.get("ts")))
        if message is None or message["channel"] != room.id:
            raise Refused("message_not_found")  # (documented)
        if why := message_error("ChatUpdate", body):
            raise Refused(why)
        self.messages[message["ts"]] = {**message, **body}
        return {"channel": room.id, "ts": message["ts"], "text": body["text"]}

    def _post_ephemeral(self, body: Json) -> Json:
        room = self._find_channel(body.get("channel"))
        if why := message_error("ChatPostMessage", {k: v for k, v in body.items() if k != "user"}):
            raise Refused(why)
        if body.get("user") not in self.users:
            raise Refused("user_not_in_channel")  # (documented); who is known is in every room (assumed)
        self.ephemerals.append({**body, "channel": room.id})
        return {"message_ts": self._ts()}

    def _view(self, body: Json) -> Json:
        """A trigger opens one form, within three seconds (documented); the codes of both refusals are (seen)."""
        view = json.loads(body["view"]) if isinstance(body.get("view"), str) else body.get("view")
        made, user = self._triggers.pop(str(body.get("trigger_id")), (0, ""))
        if not user:
            raise Refused("exchanged_trigger_id" if body.get("trigger_id") else "invalid_arguments")
        if self.clock() - made > 3_000:
            raise Refused("expired_trigger_id")
        if why := view_error({"trigger_id": "t", "view": view}):
            raise Refused(why)
        view_id = f"V{self._next()}"
        self.views[view_id] = OpenView(view_id, user, dict(view))
        return {"view": {**view, "id": view_id}}

    def _find_channel(self, channel: object) -> Channel:
        """By id or by name, with or without #; so are the three refusals (all documented)."""
        name = str(channel or "").removeprefix("#")
        room = next((each for each in self.channels.values() if name in (each.id, each.name)), None)
        if room is None:
            raise Refused("channel_not_found")
        if room.archived:
            raise Refused("is_archived")
        if BOT not in room.members:
            raise Refused("not_in_channel")
        return room

    def _find_user(self, user: str) -> Json:
        if user not in self.users:
            raise Refused("user_not_found")
        return self.users[user]

    def _user(self, user: str) -> Json:
        known = self.users[user]
        return {"id": user, "username": known["name"], "name": known["name"], "team_id": known["team_id"]}

    def _trigger(self, user: str) -> str:
        trigger = f"{self._next()}.trigger"
        self._triggers[trigger] = (self.clock(), user)
        return trigger

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _ts(self) -> str:
        return f"{self.clock() // 1000}.{self._next():06}"

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def sign(body: bytes, at: int, secret: str) -> SignedRequest:
    """Version 0 of Slack's signature (documented, with an example that is in the vendor's folder)."""
    proof = hmac.new(secret.encode(), b"v0:%d:" % at + body, sha256).hexdigest()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": str(at),
        "x-slack-signature": f"v0={proof}",
    }
    return SignedRequest(headers, body)


def buttons(message: Json) -> Iterator[Json]:
    for block in message.get("blocks", ()):
        if block["type"] == "actions":
            yield from block["elements"]


def texts(value: object) -> Iterator[tuple[str, str]]:
    """Every text that people see, with how Slack reads it: `mrkdwn`, `plain_text`, or `text` for the fallback."""
    match value:
        case {"type": ("mrkdwn" | "plain_text") as kind, "text": str(text)}:
            yield kind, text
        case dict():
            if isinstance(value.get("text"), str) and "blocks" in value:
                yield "text", value["text"]
            for each in value.values():
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)


def view_state(view: Json, values: Mapping[str, object] | None = None) -> Json:
    """What all fields of a form hold when it is sent off, by block and action."""
    fields = [each for each in view["blocks"] if each["type"] == "input"]
    return {each["block_id"]: {each["element"]["action_id"]: _state(each, values or {})} for each in fields}


def _state(block: Json, values: Mapping[str, object]) -> Json:
    """What a field holds when it is sent off. A field that is not optional cannot be left empty (documented)."""
    element, name = block["element"], block["label"]["text"]
    given = values.get(name, Ellipsis)
    match element["type"]:
        case "plain_text_input":
            value = element.get("initial_value") if given is Ellipsis else given
            assert value or block.get("optional"), f"{name} is empty"
            return {"type": element["type"], "value": value or None}
        case "checkboxes":
            wanted = [] if given is Ellipsis else given
            chosen = element["options"] if wanted == "all" else [element["options"][n] for n in wanted]
            assert chosen or block.get("optional"), f"{name} is empty"
            return {"type": element["type"], "selected_options": chosen}
        case kind:
            initial = element.get("initial_option")
            chosen = (
                initial
                if given is Ellipsis
                else next((each for each in element["options"] if each["text"]["text"].startswith(str(given))), None)
            )
            assert chosen or block.get("optional"), f"{name} is empty"
            return {"type": kind, "selected_option": chosen}


async def _read(request: web.Request, method: str) -> Json:
    """A method that reads takes no JSON (documented); all take forms, in which lists are JSON (documented)."""
    if request.content_type == "application/json":
        body = await request.json() if await request.read() else {}
        return {} if method in READ_METHODS else dict(body)
    fields = {**request.query, **(await request.post() if request.method == "POST" else {})}
    return {k: json.loads(v) if k in ("blocks", "view", "metadata") else v for k, v in fields.items() if k != "token"}


@asynccontextmanager
async def run_slack(slack: FakeSlack) -> AsyncIterator[FakeSlack]:
    app = web.Application()
    app.router.add_route("*", "/api/{method}", slack.api)
    app.router.add_get("/link", slack.socket)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    slack.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield slack
    finally:
        await runner.cleanup()
