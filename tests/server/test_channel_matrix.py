"""Every kind of channel that people answer through, in two workspaces: each decides in its own alone.

Both workspaces have channels of the same names with secrets of their own. A kind that is added and can answer wants a
line in `SIGNED`. The pager is a class from outside, of the examples.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, get_type_hints
from urllib.parse import urlencode

import pytest
from standardwebhooks import Webhook as Standard

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings, Settings, WorkspaceSettings
from interlock.core.notify.delivery import DeliveryTarget, new_delivery
from interlock.notify.channel import CHANNEL_KINDS, load_channel_type
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.fakes.slack import sign
from tests.interlock_server import make_keys
from tests.server.asgi_request import Response, send_request
from tests.support import Clock, propose_pending, status

OURS, THEIRS = "default", "zebra"
NOTHING = "00000000-0000-7000-8000-000000000000"
SECRETS = {
    OURS: f"whsec_{base64.b64encode(bytes([1]) * 32).decode()}",
    THEIRS: f"whsec_{base64.b64encode(bytes([2]) * 32).decode()}",
}
NOWHERE = {"url": "http://127.66.66.66/", "allow_private": True}
EXAMPLES = Path(__file__).parents[2] / "examples"
USER = "T1/U1"  # bob of both workspaces, as both Slacks know him


class AnswerTarget(NamedTuple):
    """What an answer is about: an approval, and the message that asked for it."""

    workspace: str
    approval_id: str
    delivery_id: str
    digest: str


@dataclass
class ChannelWorkspaces:
    services: AppServices
    app: RequestMiddleware
    clock: Clock

    async def make_target(self, workspace: str, channel: str) -> AnswerTarget:
        """A new approval, which a message through this channel of its workspace tells."""
        number = f"{workspace}{channel}"
        approval_id = await propose_pending(self.services, number, workspace=workspace)
        approval = (await self.services.store.get(workspace, approval_id)).approval
        delivery = new_delivery(
            DeliveryTarget(channel), f"of-{approval_id}"[:36], approval, "asked", self.clock(), self.clock()
        )
        await self.services.store.deliveries.add(delivery)
        return AnswerTarget(workspace, approval_id, delivery.id, approval.args_sha256)

    async def post_answer(self, path: str, post: tuple[Mapping[str, str], bytes]) -> Response:
        return await send_request(self.app, "POST", path, dict(post[0]), post[1])

    async def ledger_heads(self) -> list[object]:
        return [await self.services.store.head(workspace) for workspace in (OURS, THEIRS)]


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def channels(workspace: str) -> dict[str, ChannelSettings]:
        secret = SECRETS[workspace]
        hook = {**NOWHERE, "secret": secret, "acts_as": "bob"}
        return {
            "webhook": ChannelSettings("webhook", hook),
            "pager": ChannelSettings("mycompany.pager:Pager", hook),
            "slack": ChannelSettings("slack", {**NOWHERE, "token": "xoxb-1", "signing_secret": secret}),
        }

    theirs = WorkspaceSettings({**channels(THEIRS), "own": channels(THEIRS)["webhook"]})
    return Settings(channels=channels(OURS), workspaces={THEIRS: theirs})


@pytest.fixture
async def two_workspaces(
    services: AppServices, state: ServerState, app: RequestMiddleware, clock: Clock
) -> ChannelWorkspaces:
    for workspace in (OURS, THEIRS):
        await make_keys(services, workspace)
        await services.store.deliveries.bind(workspace, "slack", USER, "bob", "bob")
        await state.workspaces.refresh(workspace)
    return ChannelWorkspaces(services, app, clock)


def by_webhook(secret: str, about: AnswerTarget, at: int) -> tuple[Mapping[str, str], bytes]:
    """As the standard's library signs it; the id of the message is the approval's."""
    body = {"approval_id": about.approval_id, "decision": {"kind": "approve", "args_sha256": about.digest}}
    return _standard(secret, body, about.approval_id, at)


def by_webhook_with_workspace(secret: str, about: AnswerTarget, at: int) -> tuple[Mapping[str, str], bytes]:
    body = {"approval_id": about.approval_id, "decision": {"kind": "approve", "args_sha256": about.digest}}
    return _standard(secret, {**body, "workspace": about.workspace}, f"w{about.approval_id}", at)


def by_pager(secret: str, about: AnswerTarget, at: int) -> tuple[Mapping[str, str], bytes]:
    body = {"approval_id": about.approval_id, "decision": {"kind": "approve", "args_sha256": about.digest}}
    content, stamp = json.dumps(body).encode(), str(at)
    proof = hmac.new(secret.encode(), stamp.encode() + b"." + content, "sha256").hexdigest()
    headers = {"pager-time": stamp, "pager-signature": proof, "content-type": "application/json"}
    return headers, content


def by_slack(secret: str, about: AnswerTarget, at: int) -> tuple[Mapping[str, str], bytes]:
    value = f"{about.workspace}.{about.delivery_id} {about.digest}"
    payload = {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": "U1", "team_id": "T1"},
        "channel": {"id": "C1"},
        "actions": [{"action_id": "approve", "value": value}],
    }
    post = sign(urlencode({"payload": json.dumps(payload)}).encode(), at // 1000, secret)
    return post.headers, post.body


def _standard(secret: str, body: object, name: str, at: int) -> tuple[Mapping[str, str], bytes]:
    content, moment = json.dumps(body), datetime.fromtimestamp(at // 1000, UTC)
    proof = Standard(secret).sign(name, moment, content)
    stamp = str(int(moment.timestamp()))
    headers = {"webhook-id": name, "webhook-timestamp": stamp, "webhook-signature": proof}
    return {**headers, "content-type": "application/json"}, content.encode()


Sign = Callable[[str, AnswerTarget, int], tuple[Mapping[str, str], bytes]]
SIGNED: dict[str, tuple[Sign, ...]] = {
    "slack": (by_slack,),
    "webhook": (by_webhook, by_webhook_with_workspace),
}
FROM_OUTSIDE: list[tuple[str, Sign]] = [("pager", by_pager)]
KINDS_AND_SIGNERS = [*((kind, sign) for kind, ways in SIGNED.items() for sign in ways), *FROM_OUTSIDE]


def addresses(workspace: str, channel: str) -> list[str]:
    old = [f"/channels/{channel}/callback"] if workspace == OURS else []
    return [*old, f"/channels/{workspace}/{channel}/callback"]


def test_every_kind_that_can_answer_is_in_the_matrix() -> None:
    made = {kind: get_type_hints(load_channel_type(kind).connect)["return"] for kind in CHANNEL_KINDS}
    able = {kind for kind, channel in made.items() if hasattr(channel, "answer")}
    assert able == set(SIGNED)


@pytest.mark.parametrize(("kind", "sign"), KINDS_AND_SIGNERS)
@pytest.mark.parametrize("workspace", [OURS, THEIRS])
async def test_a_rightly_signed_answer_decides_in_its_own_workspace(
    two_workspaces: ChannelWorkspaces, workspace: str, kind: str, sign: Sign
) -> None:  # R25 R60
    about = await two_workspaces.make_target(workspace, kind)
    got = await two_workspaces.post_answer(
        addresses(workspace, kind)[0], sign(SECRETS[workspace], about, two_workspaces.clock())
    )
    assert got.status == 200, got.text
    assert await status(two_workspaces.services, about.approval_id, workspace) == "approved"


@pytest.mark.postgres_smoke
@pytest.mark.parametrize(("kind", "sign"), KINDS_AND_SIGNERS)
@pytest.mark.parametrize("workspace", [OURS, THEIRS])
async def test_a_rightly_signed_answer_about_another_workspace_changes_nothing_and_tells_nothing(
    two_workspaces: ChannelWorkspaces, workspace: str, kind: str, sign: Sign
) -> None:  # R60
    """What it is answered is what is answered about nothing at all."""
    other = THEIRS if workspace == OURS else OURS
    about = await two_workspaces.make_target(other, kind)
    nothing = about._replace(workspace="nobodys", approval_id=NOTHING, delivery_id=NOTHING)
    before = await two_workspaces.ledger_heads()
    for path in addresses(workspace, kind):
        got, unknown = [
            await two_workspaces.post_answer(path, sign(SECRETS[workspace], each, two_workspaces.clock()))
            for each in (about, nothing)
        ]
        assert (got.status, got.text.replace(about.approval_id, NOTHING)) == (unknown.status, unknown.text)
    assert await two_workspaces.ledger_heads() == before
    assert await status(two_workspaces.services, about.approval_id, other) == "pending"


@pytest.mark.parametrize(("kind", "sign"), KINDS_AND_SIGNERS)
@pytest.mark.parametrize("workspace", [OURS, THEIRS])
async def test_the_secret_of_a_workspace_proves_nothing_at_the_address_of_another(
    two_workspaces: ChannelWorkspaces, workspace: str, kind: str, sign: Sign
) -> None:  # R60
    other = THEIRS if workspace == OURS else OURS
    about = await two_workspaces.make_target(other, kind)
    before = await two_workspaces.ledger_heads()
    for path in addresses(other, kind):
        got = await two_workspaces.post_answer(path, sign(SECRETS[workspace], about, two_workspaces.clock()))
        assert (got.status, got.error_code) == (401, "unauthenticated")
    assert await two_workspaces.ledger_heads() == before


async def test_a_channel_of_another_workspace_is_at_no_other_address(two_workspaces: ChannelWorkspaces) -> None:  # R60
    about = await two_workspaces.make_target(THEIRS, "own")
    post = by_webhook(SECRETS[THEIRS], about, two_workspaces.clock())
    paths = ["/channels/own/callback", "/channels/default/own/callback", "/channels/nobodys/own/callback"]
    refused = [await two_workspaces.post_answer(path, post) for path in (*paths, "/channels/nothing/callback")]
    assert {(got.status, got.text) for got in refused} == {(404, refused[0].text)}
    assert await status(two_workspaces.services, about.approval_id, THEIRS) == "pending"
    assert (await two_workspaces.post_answer("/channels/zebra/own/callback", post)).status == 200
