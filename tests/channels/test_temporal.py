"""Temporal: a workflow is woken by one signal when a decision stands, with nothing in it that could be believed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from interlock.app.bootstrap import AppServices, build_gate_and_inbox
from interlock.app.workspaces import Workspaces
from interlock.config.models import ChannelSettings as Configured
from interlock.config.models import Settings
from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import Notification, Purpose
from interlock.notify.channel import (
    Channel,
    ChannelContext,
    DeliveryDelayed,
    DeliveryRejected,
    InboundChannel,
    open_channel,
)
from interlock.notify.channels.temporal import TemporalChannel as Kind
from interlock.notify.service import build_notification_service
from interlock.server.logs import JsonLogger
from interlock.testing.channels import PURPOSES, make_notification, make_view
from tests.fakes.temporal import SignalFailure, Temporal, temporal
from tests.support import Clock, approve, propose_pending

APPROVAL = "5a7d9c1e-0000-4000-8000-000000000001"
STARTING = {"workflow": "Refund", "task_queue": "refunds"}
NEVER = ["PERMISSION_DENIED", "UNAUTHENTICATED", "INVALID_ARGUMENT", "UNIMPLEMENTED", "FAILED_PRECONDITION"]


@pytest.fixture
def fake() -> Iterator[Temporal]:
    with temporal() as made:
        yield made


@pytest.fixture
async def flows(fake: Temporal) -> AsyncIterator[Channel]:
    made = channel(fake)
    yield made
    await made.close()


def channel(fake: Temporal, **settings: object) -> Channel:
    return open_channel("flows", "temporal", ChannelContext("flows", {"target": fake.target, **settings}))[0]


def wake_notification(workflow_id: str = "order-7", **more: object) -> Notification:
    made = make_view(status="approved")
    subject = made.approval.subject._replace(run_id=f"temporal:{workflow_id}")
    return make_notification("woken", replace(made, approval=replace(made.approval, subject=subject)), **more)


async def test_the_signal_names_the_approval_and_nothing_else(fake: Temporal, flows: Channel) -> None:  # R25 R33
    run = fake.start("order-7", "Refund")
    await flows.send(wake_notification())
    (request,) = fake.signals
    assert (request.namespace, request.workflow_execution.workflow_id) == ("default", "order-7")
    assert (request.signal_name, request.request_id, request.identity) == ("interlock_woken", "d1.woken", "interlock")
    (payload,) = request.input.payloads
    assert json.loads(payload.data) == {"approval_id": APPROVAL}
    assert run.kinds[-1] == "WORKFLOW_EXECUTION_SIGNALED"


async def test_retried_signal_is_one_signal(fake: Temporal, flows: Channel) -> None:  # R24
    run = fake.start("order-7", "Refund")
    for _ in range(3):
        await flows.send(wake_notification())
    await flows.update(wake_notification(), "")
    assert (len(fake.signals), run.kinds.count("WORKFLOW_EXECUTION_SIGNALED")) == (4, 1)


async def test_a_workflow_that_there_never_was_is_started_with_the_signal(fake: Temporal) -> None:
    flows = channel(fake, **STARTING)
    for _ in range(2):
        await flows.send(wake_notification())
    run = fake.runs["order-7"]
    assert (run.type, run.queue, run.kinds.count("WORKFLOW_EXECUTION_SIGNALED")) == ("Refund", "refunds", 1)
    assert {request.request_id for request in fake.signals} == {"d1.woken"}


async def test_a_workflow_that_runs_is_not_started_again(fake: Temporal) -> None:
    run = fake.start("order-7", "Refund")
    await channel(fake, **STARTING).send(wake_notification())
    assert (fake.runs["order-7"], run.kinds[-1]) == (run, "WORKFLOW_EXECUTION_SIGNALED")


@pytest.mark.parametrize("settings", [{}, STARTING], ids=["signal", "signal with start"])
async def test_a_workflow_that_has_ended_counts_as_woken(fake: Temporal, settings: dict[str, object]) -> None:
    run = fake.start("order-7", "Refund")
    run.write("workflow_execution_completed")
    await channel(fake, **settings).send(wake_notification())
    assert (len(fake.signals), fake.runs["order-7"], run.is_closed) == (1, run, True)


async def test_a_workflow_that_nobody_knows_counts_as_woken(fake: Temporal, flows: Channel) -> None:
    await flows.send(wake_notification("gone"))
    assert (len(fake.signals), fake.runs) == (1, {})


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNKNOWN"])
async def test_temporary_failure_is_retried(fake: Temporal, flows: Channel, code: str) -> None:  # R25
    fake.signal_failure = SignalFailure(grpc.StatusCode[code], "planted words")
    with pytest.raises(DeliveryDelayed) as caught:
        await flows.send(wake_notification())
    assert "planted" not in str(caught.value)
    fake.signal_failure = None
    run = fake.start("order-7", "Refund")
    await flows.send(wake_notification())
    assert run.kinds.count("WORKFLOW_EXECUTION_SIGNALED") == 1


@pytest.mark.parametrize("code", NEVER)
async def test_what_does_not_pass_is_shown(fake: Temporal, flows: Channel, code: str) -> None:  # R25
    fake.signal_failure = SignalFailure(grpc.StatusCode[code], "planted words")
    with pytest.raises(DeliveryRejected, match=f"rejected the request \\({code.lower()}\\)") as caught:
        await flows.send(wake_notification())
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("made", [wake_notification(), make_notification("test")], ids=["woken", "test"])
async def test_a_namespace_that_there_is_not_is_said(fake: Temporal, made: Notification) -> None:
    """It is NOT_FOUND as well, and no workflow that has ended."""
    with pytest.raises(DeliveryRejected, match="does not have this namespace"):
        await channel(fake, namespace="elsewhere").send(made)


async def test_server_that_is_down_is_retried() -> None:
    away = open_channel("flows", "temporal", ChannelContext("flows", {"target": "127.0.0.1:1"}))[0]
    with pytest.raises(DeliveryDelayed):
        await away.send(wake_notification())


@pytest.mark.parametrize("purpose", [each for each in PURPOSES if each != "test"])
async def test_what_is_for_people_is_not_said(fake: Temporal, flows: Channel, purpose: Purpose) -> None:
    await flows.send(make_notification(purpose))
    assert fake.signals == []


async def test_a_test_asks_for_the_namespace_and_signals_nobody(fake: Temporal, flows: Channel) -> None:
    await flows.send(make_notification("test"))
    assert fake.signals == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "target is missing"),
        ({"target": "temporal.example"}, "a host and a port"),
        ({"target": "https://temporal.example:7233"}, "a host and a port"),
        ({"target": "t:7233", "workflow": "Refund"}, "must be set together"),
        ({"target": "t:7233", "task_queue": "refunds"}, "must be set together"),
        ({"target": "t:7233", "tls": "yes"}, "true or false"),
        ({"target": "t:7233", "tls": 1}, "true or false"),
        ({"target": "t:7233", "tls": False, "api_key": "planted"}, "require tls: true"),
        ({"target": "t:7233", "ca": "/planted/file"}, "a readable file"),
        ({"target": "t:7233", "namespaces": "x"}, 'did you mean "namespace"'),
    ],
)
def test_settings_that_cannot_be_right_are_refused_in_words(settings: dict[str, object], words: str) -> None:  # R26
    with pytest.raises(Misconfigured, match=words) as caught:
        open_channel("flows", "temporal", ChannelContext("flows", settings))
    assert "planted" not in str(caught.value)


def test_a_certificate_goes_with_its_key(tmp_path: Path) -> None:
    pem = tmp_path / "client.pem"
    pem.write_text("-----BEGIN CERTIFICATE-----")
    with pytest.raises(Misconfigured, match="must be set together"):
        open_channel("flows", "temporal", ChannelContext("flows", {"target": "t:7233", "certificate": str(pem)}))
    both = {"target": "t:7233", "certificate": str(pem), "private_key": str(pem)}
    assert isinstance(open_channel("flows", "temporal", ChannelContext("flows", both))[0], Kind)


def test_nothing_comes_back_from_temporal() -> None:
    assert not isinstance(Kind, InboundChannel)  # R25


@pytest.mark.postgres_smoke
async def test_dispatcher_signals_on_a_decision_and_retries_until_accepted(
    services: AppServices, fake: Temporal, clock: Clock
) -> None:  # R25 R33
    settings = Settings(channels={"flows": Configured("temporal", {"target": fake.target})})
    workspaces = Workspaces(services.store, lambda policy: build_gate_and_inbox(services.store, policy), {})
    lines: list[str] = []
    reach = build_notification_service(
        settings, services.store, workspaces, JsonLogger(services.clock, "problems", lines.append)
    )
    courier = reach.make_dispatcher()
    await workspaces.refresh("default")
    await courier.sweep()
    run = fake.start("order-7", "Refund")
    approval_id = await propose_pending(services, 1, run_id="temporal:order-7")
    await courier.sweep()
    assert fake.signals == []
    fake.signal_failure = SignalFailure(grpc.StatusCode.UNAVAILABLE)
    await approve(services, approval_id)
    await courier.sweep()
    assert (len(fake.signals), "WORKFLOW_EXECUTION_SIGNALED" in run.kinds) == (1, False)
    fake.signal_failure = None
    clock.advance(60_000)
    await courier.sweep()
    await courier.sweep()
    assert (len(fake.signals), run.kinds.count("WORKFLOW_EXECUTION_SIGNALED")) == (2, 1)
    assert len({request.request_id for request in fake.signals}) == 1
