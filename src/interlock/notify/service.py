"""Notification service: configured channels, dispatcher, signed links, and inbound decisions from channels."""

from __future__ import annotations

import asyncio
import hmac
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple, cast

from interlock.app.inbox import ApprovalDetails, active_delegations
from interlock.app.workspaces import Workspaces, WorkspaceServices
from interlock.config.models import Settings
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.card import escape_invisible
from interlock.core.decision import Decision, Reviewer
from interlock.core.declared import shown_schema
from interlock.core.errors import Conflict, Error, Expired, Misconfigured, NotFound
from interlock.core.identity import IDENTITY_LINK_TTL, IdentityLink, read_identity_link, sign_identity_link
from interlock.core.notify.delivery import (
    ApprovalView,
    Delivery,
    DeliveryTarget,
    Notification,
    Purpose,
    Recipient,
    is_revised,
    make_test_delivery,
)
from interlock.core.notify.routing import Contact, Routes
from interlock.core.policy.policy import People
from interlock.core.ports import User
from interlock.notify.channel import Channel, InboundChannel, InboundResponse, ListeningChannel, SignInCodeChannel
from interlock.notify.channel_queue import DispatchContext, DispatchLog
from interlock.notify.dispatcher import Dispatcher
from interlock.notify.workspace_channels import WorkspaceChannels, open_workspace_channels
from interlock.runtime.process_identity import is_dead, make_runner_id
from interlock.storage.engine.transaction import LEDGER_TOPIC
from interlock.storage.store import SqlStore
from interlock.storage.tables.idempotency import IdempotencyKey

BackgroundTask = Callable[[asyncio.Event], Awaitable[None]]
LINK_LIFETIME = 7 * 24 * 3_600_000  # milliseconds that a link works after the call has expired
MAX_RESULT = 200  # characters of a result in a message
_TOKEN = re.compile(r"([a-z0-9-]{1,63})\.([0-9a-f-]{36})\.([0-9]{1,16})\.[0-9a-f]{32}", re.ASCII)
INBOX_ONLY = "It has no channels: approvals only appear in the web app. See: interlock doctor"
IN_PROGRESS_POLL = 0.05  # seconds between checks of a request in progress with the same key


class LinkToken(NamedTuple):
    """A verified link token: made for this person, about this delivery."""

    delivery: Delivery
    recipient: Recipient
    expires_at: int


@dataclass(frozen=True, kw_only=True)
class NotificationService:
    """Notifications and inbound decisions of one workspace, with its own `settings`, `channels` and `routes`.

    It is made for the default workspace; `for_workspace` returns that of another one, from the channels in `others`.
    """

    settings: Settings
    store: SqlStore
    workspaces: Workspaces
    channels: Mapping[str, Channel]
    routes: Routes
    log: DispatchLog
    public_url: str
    workspace: str = DEFAULT_WORKSPACE
    others: Mapping[str, WorkspaceChannels] = field(default_factory=dict)

    def for_workspace(self, workspace: str) -> NotificationService:
        """Return the service of another workspace; without channels, if none are configured for it."""
        if workspace == self.workspace:
            return self
        channels, routes = self.others.get(workspace, WorkspaceChannels({}, Routes()))
        own = self.settings.for_workspace(workspace)
        return replace(self, settings=own, channels=channels, routes=routes, workspace=workspace, others={})

    # Lifecycle and background tasks, for all workspaces

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Log a warning for workspaces without channels, and close the channels at the end."""
        try:
            known = [name for name, _ in await self.store.accounts.workspaces()]
            for name in self.settings.workspaces_without_channels(known):
                self.log.write("warning", "workspace_without_channels", workspace=name, note=INBOX_ONLY)
            yield
        finally:
            for each in self._channels_by_workspace().values():
                for channel in each.channels.values():
                    await channel.close()

    @property
    def background_tasks(self) -> list[BackgroundTask]:
        """Background tasks: the dispatcher and the listening channels."""
        listening = [
            _listen_task(name, each, self.for_workspace(workspace))
            for workspace, own in self._channels_by_workspace().items()
            for name, each in own.channels.items()
            if isinstance(each, ListeningChannel)
        ]
        return [self.make_dispatcher().run, *listening]

    def make_dispatcher(self) -> Dispatcher:
        context = DispatchContext(
            store=self.store.deliveries,
            clock=self.store.clock,
            runner=make_runner_id(),
            compose=self.compose,
            log=self.log,
            is_dead=is_dead,
        )
        return Dispatcher(
            context,
            {name: each for name, each in self._channels_by_workspace().items() if each.channels},
            self.contacts,
            lambda: self.store.watch("", LEDGER_TOPIC),
        )

    def _channels_by_workspace(self) -> dict[str, WorkspaceChannels]:
        return {self.workspace: WorkspaceChannels(self.channels, self.routes), **self.others}

    async def contacts(self, workspace: str) -> Sequence[Contact]:
        users = [user for user in (await self._services(workspace)).people.values() if user.removed_at is None]
        now = self.store.clock()
        away = [user for user in users if now < (user.away_until or 0)]
        return [_contact(user, away, now) for user in users]

    # Messages

    async def compose(self, delivery: Delivery) -> Notification:
        """Build a message from the current state, so that none has to be stored."""
        to = await self._recipient(delivery)
        link, approval_view, count, by = f"{self.public_url}/inbox", None, 0, ""
        if delivery.approval_id:
            approval_view = await self.get_approval_view(delivery.workspace, delivery.approval_id)
            link = await self._link(delivery, approval_view)
        elif delivery.reason == "group":
            count = int(delivery.desired_state)
        else:
            by = delivery.desired_state
        return Notification(
            id=delivery.message_id,
            thread=f"{delivery.workspace}.{delivery.id}",
            workspace=delivery.workspace,
            purpose=_purpose(delivery, approval_view),
            to=to,
            link=link,
            at=self.store.clock(),
            approval_view=approval_view,
            count=count,
            requested_by=by,
            revised=is_revised(delivery),
        )

    async def get_approval_view(self, workspace: str, approval_id: str) -> ApprovalView:
        view = await (await self._services(workspace)).inbox.show(workspace, approval_id)
        payload, spec = view.stored.payload, view.spec
        args = (payload.shown if payload.shown is not None else payload.args) or b"{}"
        return ApprovalView(
            approval=view.stored.approval,
            status=view.status,
            card=view.card,
            schema=shown_schema(spec),
            result=_result(view),
            args=args,
            secret_pointers=spec.secret,
            declared=spec.declared,
        )

    async def _recipient(self, delivery: Delivery) -> Recipient:
        target = delivery.target
        user = (await self._services(delivery.workspace)).people.get(target.person) if target.person else None
        if target.person and (user is None or user.removed_at is not None):
            raise NotFound(f"{escape_invisible(target.person)} is no longer a member of the workspace.")
        return Recipient(target.person, user.email if user else "", target.destination)

    # Links

    async def _link(self, delivery: Delivery, approval_view: ApprovalView) -> str:
        url = f"{self.public_url}/a/{approval_view.approval.id}"
        if not delivery.target.person:
            return url
        expires_at = approval_view.approval.deadlines.expires_at + LINK_LIFETIME
        return f"{url}?t={await self._sign_link(delivery, expires_at)}"

    async def verify_link_token(self, text: str) -> LinkToken:
        """Verify a link's token, without using it up. Raises NotFound for an invalid one, Expired after its time."""
        refusal = NotFound("This link is invalid or expired. Open the inbox instead.")
        shape = _TOKEN.fullmatch(text)
        if shape is None:
            raise refusal
        workspace, delivery_id, expires = shape.groups()
        try:
            delivery = await self.store.deliveries.get(workspace, delivery_id)
        except NotFound:
            raise refusal from None
        if not hmac.compare_digest(text, await self._sign_link(delivery, int(expires))):
            raise refusal
        if self.store.clock() >= int(expires):
            raise Expired("This link has expired. Open the inbox instead.")
        return LinkToken(delivery, await self._recipient(delivery), int(expires))

    async def _sign_link(self, delivery: Delivery, expires_at: int) -> str:
        key = await self.store.secret_key(delivery.workspace)
        signed_text = "\n".join(
            (delivery.workspace, delivery.id, delivery.approval_id, delivery.target.person, str(expires_at))
        )
        proof = hmac.digest(hmac.digest(key, b"links", sha256), signed_text.encode(), sha256).hex()[:32]
        return f"{delivery.workspace}.{delivery.id}.{expires_at}.{proof}"

    def find_code_channel(self, delivery: Delivery) -> SignInCodeChannel | None:
        """Return the delivery's channel, if a sign-in code sent through it proves a person's identity."""
        channel: object = self.for_workspace(delivery.workspace).channels.get(delivery.target.channel)
        return channel if isinstance(channel, SignInCodeChannel) and channel.has_codes else None

    async def verify_identity_link(self, link: str) -> IdentityLink:
        """Verify a link that binds an external account to a person. Raises NotFound."""
        identity_link = read_identity_link(
            await self.store.secret_key(self.workspace), self.workspace, link, self.store.clock()
        )
        self.channel(identity_link.channel)
        return identity_link

    # Tests

    async def send_test(self, workspace: str, name: str, person: str) -> Notification:
        """Send a test message now, and raise what goes wrong. On a personal channel, it goes to the requester."""
        own = self.for_workspace(workspace)
        channel, capabilities = own.channel(name), own.routes.capabilities[name]
        target = DeliveryTarget(name, "", person if capabilities.personal else "")
        delivery = make_test_delivery(workspace, str(uuid.uuid4()), target, person, self.store.clock())
        message = await self.compose(delivery)
        await channel.send(message)
        return message

    def channel(self, name: str) -> Channel:
        if name not in self.channels:
            there = ", ".join(self.channels) or "none"
            raise NotFound(f"There is no channel {escape_invisible(name)!r}. Configured are: {there}.")
        return self.channels[name]

    def get_inbound_channel(self, name: str) -> InboundChannel:
        """Return an inbound channel. The error does not reveal which channels exist: the caller is unauthenticated."""
        channel: object = self.channels.get(name)
        if not isinstance(channel, InboundChannel):
            raise NotFound("This address does not accept requests.")
        return channel

    async def _services(self, workspace: str) -> WorkspaceServices:
        return await self.workspaces.services(workspace)


@dataclass(frozen=True)
class InboundHandler:
    """Inbound requests of one channel: implements InboundPort of `notify/channel.py`.

    A channel acts for its own workspace alone: anything in another one is not found.
    """

    notifications: NotificationService
    channel: str

    @property
    def workspace(self) -> str:
        return self.notifications.workspace

    async def delivery(self, thread: str) -> Delivery:
        workspace, _, delivery_id = thread.partition(".")
        unknown = NotFound("There is no delivery with this id.", delivery_id=delivery_id)
        if workspace != self.workspace:
            raise unknown
        found = await self.notifications.store.deliveries.get(workspace, delivery_id)
        if found.target.channel != self.channel:
            raise unknown
        return found

    async def find_reviewer(self, workspace: str, external_id: str, email: str = "") -> Reviewer | None:
        if workspace != self.workspace:
            return None
        name = await self.notifications.store.deliveries.find_person(workspace, self.channel, external_id)
        if name:
            return await self.member(workspace, name, external_id)
        people = (await self.notifications.workspaces.services(workspace)).people.values()
        active_users = [user for user in people if user.removed_at is None]
        matching_names = [user.name for user in active_users if email and user.email.casefold() == email.casefold()]
        return await self.member(workspace, matching_names[0], external_id) if len(matching_names) == 1 else None

    async def member(self, workspace: str, name: str, external_id: str = "") -> Reviewer | None:
        if workspace != self.workspace:
            return None
        services = await self.notifications.workspaces.services(workspace)
        user = services.people.get(name)
        if user is None or user.removed_at is not None:
            return None
        delegations = active_delegations(services.people.values(), user.name, user.teams, self.now())
        credential = f"{self.channel} {external_id}".strip()
        return Reviewer(
            user.name,
            user.role,
            teams=user.teams,
            via=self.channel,
            delegations_to_me=delegations,
            credential=credential,
        )

    async def get_approval_view(self, workspace: str, approval_id: str) -> ApprovalView:
        self._require_own_workspace(workspace, approval_id)
        return await self.notifications.get_approval_view(workspace, approval_id)

    async def decide(self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer) -> ApprovalView:
        self._require_own_workspace(workspace, approval_id)
        services = await self.notifications.workspaces.services(workspace)
        await services.inbox.decide(workspace, approval_id, decision, reviewer)
        return await self.get_approval_view(workspace, approval_id)

    async def record_refusal(
        self, workspace: str, approval_id: str, reviewer: Reviewer, error: Error, attempted: Decision | None = None
    ) -> None:
        self._require_own_workspace(workspace, approval_id)
        services = await self.notifications.workspaces.services(workspace)
        with suppress(Error):  # the person gets the channel's own message
            await services.inbox.record_refusal(workspace, approval_id, attempted, reviewer, error)

    async def run_once(
        self, workspace: str, key: str, work: Callable[[], Awaitable[InboundResponse]], digest: str = ""
    ) -> InboundResponse:
        """Run work once for each idempotency key; a concurrent request waits for the response."""
        self._require_own_workspace(workspace)
        idempotency, idempotency_key = (
            self.notifications.store.idempotency,
            IdempotencyKey(workspace, f"channel:{self.channel}", key),
        )
        while True:
            record = await idempotency.reserve(idempotency_key, digest or key)
            if record.digest != (digest or key):
                raise Conflict("This id was already used for another message. Use a new id for each message.")
            if record.reservation_token:
                break
            if record.status:
                return InboundResponse(record.status, record.body)
            await asyncio.sleep(IN_PROGRESS_POLL)
        try:
            reply = await work()
        except BaseException:
            await idempotency.release(idempotency_key, record.reservation_token)
            raise
        await idempotency.save(idempotency_key, record.reservation_token, reply.status, reply.body)
        return reply

    async def make_identity_link(self, workspace: str, external_id: str) -> str:
        self._require_own_workspace(workspace)
        identity_link = IdentityLink(self.channel, external_id, self.now() + IDENTITY_LINK_TTL)
        token = sign_identity_link(await self.notifications.store.secret_key(workspace), workspace, identity_link)
        return f"{self.notifications.public_url}/settings/me?link={token}"

    def now(self) -> int:
        return self.notifications.store.clock()

    def _require_own_workspace(self, workspace: str, approval_id: str = "") -> None:
        if workspace != self.workspace:
            raise NotFound("There is no approval with this id.", approval_id=approval_id)


def build_notification_service(
    settings: Settings, store: SqlStore, workspaces: Workspaces, log: DispatchLog
) -> NotificationService:
    """Build the service at startup. Raises Misconfigured for invalid channels."""
    server = settings.server
    public_url = server.public_url.rstrip("/") or f"http://{server.host}:{server.port}"
    own = open_workspace_channels(settings, public_url)
    others = {}
    for name in settings.workspaces:
        try:
            others[name] = open_workspace_channels(settings.for_workspace(name), public_url)
        except Misconfigured as error:
            raise Misconfigured(f"The workspace {name}: {error.message}") from None
    channels, routes = own
    return NotificationService(
        settings=settings,
        store=store,
        workspaces=workspaces,
        channels=channels,
        routes=routes,
        log=log,
        public_url=public_url,
        others=others,
    )


def _contact(user: User, away: Sequence[User], now: int) -> Contact:
    """Make a contact. `away` are the people who are away now: few, even in a large workspace."""
    covers = active_delegations(away, user.name, user.teams, now)
    is_away = user in away and user.away_to not in (None, People())
    return Contact(user.name, user.role, user.teams, has_email=bool(user.email), away=is_away, delegations_to_me=covers)


def _purpose(delivery: Delivery, approval_view: ApprovalView | None) -> Purpose:
    if approval_view is None:
        return "group" if delivery.reason == "group" else "test"
    if delivery.reason in ("expired", "woken"):
        return cast(Purpose, delivery.reason)
    if not approval_view.is_open:
        return "ended"
    if not delivery.sent_state:
        return "escalate" if delivery.reason == "escalated" else "ask"
    return "remind" if delivery.is_notifying else "changed"


def _result(view: ApprovalDetails) -> str:
    """Return the error of a failed call in one line. A tool's result is left out, since it may hold anything."""
    payload = view.stored.payload
    if view.status == "failed":
        return escape_invisible((payload.error or "")[:MAX_RESULT])
    return ""


def _listen_task(name: str, channel: ListeningChannel, notifications: NotificationService) -> BackgroundTask:
    handler = InboundHandler(notifications, name)
    return lambda stop: channel.listen(handler, stop)
