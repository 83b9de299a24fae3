"""What people do in Slack: who it was, what they meant, and what they are told.

A click is answered within Slack's three seconds. Whoever may not decide, or comes too late, is told so alone.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from interlock.core.approval import approval as approvals
from interlock.core.approval import vote as voting
from interlock.core.card import visible
from interlock.core.decision import Approve, Reviewer, Seen
from interlock.core.errors import DeliveryFailed, Error, Expired, NotFound
from interlock.core.notify.delivery import Delivery
from interlock.core.notify.message import Topic
from interlock.notify.channel import Reception, Reply
from interlock.notify.channels.slack import modals
from interlock.notify.channels.slack.api import Api
from interlock.notify.channels.slack.blocks import APPROVING, VERBS, escaped, markup, plain, sentence, shows_all

Json = dict[str, Any]
SECONDS = 2.0  # that an answer takes at most; Slack gives up after three
ASKING = 1.5  # of them to ask Slack who it was
DONE = Reply(200)
CHANGED = "The arguments changed since you saw them. Look again."
UNDONE = "Nothing was decided."
UNSEEN = "This message does not show all of the call. Open the page to review it."
GONE = "Interlock does not know this message any more. Look at the inbox."
SLOW = "This takes longer than Slack waits, and goes on. Look at the message, or try again."
_ID = re.compile(r"[A-Z0-9]{1,32}")
_VALUE = re.compile(r"(\S{1,400}) ([0-9a-f]{64})")


class Who(NamedTuple):
    """A user of Slack; `outside` is what an account is bound to."""

    team: str
    user: str

    @property
    def outside(self) -> str:
        return f"{self.team}/{self.user}"


class Stranger(Exception):
    """Nobody knows who this is in Interlock; says why."""


class Clicks:
    """Work that takes longer than an answer may is kept, and waited for when the channel closes."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._home = ""
        self._working: set[asyncio.Task[Reply]] = set()

    async def handle(self, payload: Json, reception: Reception) -> Reply:
        """Of a request that is proven to be Slack's."""
        kind, value = payload.get("type"), _value(payload)
        found = _VALUE.fullmatch(value or "")
        who = _who(payload)
        if kind not in ("block_actions", "view_submission") or value is None:
            return DONE
        if found is None or who is None:
            return await self._lost(payload, who)
        thread, seen = found.groups()
        try:
            delivery = await reception.delivery(thread)
        except NotFound:
            return await self._lost(payload, who)
        act = self._clicked if kind == "block_actions" else self._submitted
        key = sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()
        return await reception.once(
            delivery.workspace,
            key,
            lambda: self._soon(lambda: act(payload, who, delivery, seen, reception), payload),
        )

    async def close(self) -> None:
        await asyncio.gather(*self._working, return_exceptions=True)

    # Buttons

    async def _clicked(self, payload: Json, who: Who, delivery: Delivery, seen: str, reception: Reception) -> Reply:
        kind = str(payload["actions"][0].get("action_id"))
        try:
            reviewer = await self._reviewer(who, delivery.workspace, reception)
            topic = await reception.topic(delivery.workspace, delivery.approval_id)
            if kind in APPROVING and topic.is_open and not shows_all(topic):
                told = _obstacle(topic, reviewer, kind, seen) or f"{UNSEEN} {UNDONE}"
            elif kind == "approve" and not (topic.is_open and topic.approval.alarms):
                told = await self._approve(topic, seen, reviewer, delivery, reception)
            else:
                told = _obstacle(topic, reviewer, kind, seen) or await self._open(payload, kind, topic)
        except Stranger as stranger:
            link = await reception.binding_link(delivery.workspace, who.outside)
            return await self._whisper(payload, who, f"{stranger} {UNDONE}", link)
        except Error as error:
            return await self._whisper(payload, who, error.message)
        return await self._whisper(payload, who, told) if told else DONE

    async def _approve(
        self, topic: Topic, seen: str, reviewer: Reviewer, delivery: Delivery, reception: Reception
    ) -> str:
        """Whatever stands against it, the server says so in its own words, and writes it down."""
        await reception.decide(delivery.workspace, delivery.approval_id, Approve(Seen(seen)), reviewer)
        if reviewer.name in {vote.by for vote in topic.approval.votes}:
            return "You have agreed to this already. It waits for others."
        return ""

    async def _open(self, payload: Json, kind: str, topic: Topic) -> str:
        """Shows a form; says what keeps it from being shown."""
        form = modals.form_of(kind, topic)
        if form is None:
            return f"Slack cannot show all that this takes. Open the page to {VERBS.get(kind, kind).lower()} it."
        view = form.view(str(_value(payload)))
        await self._api.post("views.open", {"trigger_id": payload.get("trigger_id"), "view": view})
        return ""

    async def _whisper(self, payload: Json, who: Who, text: str, link: str = "") -> Reply:
        """To the one who clicked; others see nothing. That nobody can be told is no reason to fail."""
        blocks = [sentence(visible(text))]
        blocks += [markup(f"<{escaped(link)}|Say who you are in Interlock>, and click again.")] if link else []
        place = payload.get("channel") or {}
        try:
            await self._api.post(
                "chat.postEphemeral",
                {"channel": place.get("id"), "user": who.user, "text": plain(visible(text), 2_000), "blocks": blocks},
            )
        except DeliveryFailed:
            return DONE
        return DONE

    # Forms

    async def _submitted(self, payload: Json, who: Who, delivery: Delivery, seen: str, reception: Reception) -> Reply:
        view = payload["view"]
        try:
            reviewer = await self._reviewer(who, delivery.workspace, reception)
            topic = await reception.topic(delivery.workspace, delivery.approval_id)
        except Stranger as stranger:
            return _errors({_first(view): f"{stranger} {UNDONE}"})
        except Error as error:
            return _errors({_first(view): error.message})
        kind = str(view.get("callback_id"))
        if kind in APPROVING and topic.is_open and not shows_all(topic):
            return _errors({_first(view): f"{UNSEEN} {UNDONE}"})
        form = modals.form_of(kind, topic)
        if form is None or (topic.is_open and seen != topic.approval.args_sha256):
            return _errors({_first(view): CHANGED})
        try:
            decision = modals.decision_of(form, topic, seen, (view.get("state") or {}).get("values") or {})
            await reception.decide(delivery.workspace, delivery.approval_id, decision, reviewer)
        except modals.Wrong as wrong:
            return _errors(wrong.errors)
        except Error as error:
            return _errors(modals.wrong_of(form, error))
        return DONE

    # Who it is

    async def _reviewer(self, who: Who, workspace: str, reception: Reception) -> Reviewer:
        """Bound before, or by an e-mail address that Slack has proven; never by a name. Raises Stranger."""
        known = await reception.person(workspace, who.outside)
        known = known or await reception.person(workspace, who.outside, await self._email(who))
        if known is None:
            raise Stranger("No account here has the e-mail address that you have in Slack.")
        return known

    async def _email(self, who: Who) -> str:
        try:
            async with asyncio.timeout(ASKING):
                self._home = self._home or str((await self._api.ask("auth.test")).get("team_id", ""))
                user = (await self._api.ask("users.info", user=who.user)).get("user")
        except (DeliveryFailed, TimeoutError):
            raise Stranger("Slack did not say who you are.") from None
        profile = user.get("profile") if isinstance(user, dict) else None
        if not isinstance(user, dict) or not isinstance(profile, dict) or user.get("id") != who.user:
            raise Stranger("Slack did not say who you are.")
        if not self._home or not self._home == user.get("team_id") == who.team:
            raise Stranger("You belong to another Slack workspace than this app.")
        if any(user.get(flag) for flag in ("is_bot", "deleted", "is_restricted", "is_ultra_restricted", "is_stranger")):
            raise Stranger("Slack knows you as a guest, a bot or as somebody who left.")
        email = profile.get("email")
        if user.get("is_email_confirmed") is not True or not isinstance(email, str) or not email:
            raise Stranger("Slack has not confirmed your e-mail address, or does not show it to the app.")
        return email

    # Time

    async def _soon(self, work: Callable[[], Awaitable[Reply]], payload: Json) -> Reply:
        """What is not done in time goes on after the answer."""
        task = asyncio.ensure_future(work())
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        done, _ = await asyncio.wait({task}, timeout=SECONDS)
        if done:
            return task.result()
        return _errors({_first(payload["view"]): SLOW}) if "view" in payload else DONE

    async def _lost(self, payload: Json, who: Who | None) -> Reply:
        if payload.get("type") == "view_submission":
            return _errors({_first(payload.get("view") or {}): GONE})
        return DONE if who is None else await self._whisper(payload, who, GONE)


def _value(payload: Json) -> str | None:
    """What the button or the form carries; None for what only opens a page."""
    if payload.get("type") == "view_submission":
        return str((payload.get("view") or {}).get("private_metadata", ""))
    actions = payload.get("actions")
    first = actions[0] if isinstance(actions, list) and actions and isinstance(actions[0], dict) else {}
    return str(first.get("value", "")) if first.get("action_id") in VERBS else None


def _who(payload: Json) -> Who | None:
    user = payload.get("user") or {}
    team = user.get("team_id") or (payload.get("team") or {}).get("id")
    who = Who(str(team), str(user.get("id")))
    return who if all(map(_ID.fullmatch, who)) else None


def _obstacle(topic: Topic, reviewer: Reviewer, kind: str, seen: str) -> str:
    """Why there is nothing for them to fill in; what is submitted is judged by the server, again and for good."""
    approval = topic.approval
    if topic.status == "expired":
        return Expired("This approval has expired. Let the agent propose the call again.").message
    if not topic.is_open:
        return approvals.standing(replace(approval, status=topic.status)).message
    if not voting.may_end(approval, reviewer):
        return f"{reviewer.name} may not decide this. It needs {voting.needed(approval)}."
    if kind not in approval.terms.decisions:
        return f"This call cannot be answered by {kind}; allowed: {', '.join(approval.terms.decisions)}."
    return CHANGED if seen != approval.args_sha256 else ""


def _errors(errors: Mapping[str, str]) -> Reply:
    """Below the fields; what was typed stays."""
    return Reply(200, json.dumps({"response_action": "errors", "errors": dict(errors)}).encode())


def _first(view: Json) -> str:
    """A field of the form, for what is about all of it."""
    blocks = [each for each in view.get("blocks", ()) if isinstance(each, dict) and each.get("type") == "input"]
    return str(blocks[0].get("block_id", "")) if blocks else ""
