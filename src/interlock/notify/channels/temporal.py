"""Temporal: signals the workflow whose call was decided, with `interlock_woken`. It notifies no people.

Settings: `target` (host:port), `namespace`, `api_key`, `tls`, and `ca`, `certificate` and `private_key` as files for
private TLS. With `workflow` and `task_queue`, a workflow of that type is started with the signal if there never was one
with the id. The signal names the approval and nothing else: the workflow reads the decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from temporalio.api.common.v1 import Payloads, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import WorkflowIdReusePolicy
from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    SignalWithStartWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
)
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import ApprovalView, Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify.channel import ChannelContext, DeliveryDelayed, DeliveryRejected, DeliveryUnknown, text_setting

SETTINGS = (
    "target",
    "namespace",
    "workflow",
    "task_queue",
    "api_key",
    "tls",
    "ca",
    "certificate",
    "private_key",
)
ENGINE = "temporal"
CAPABILITIES = ChannelCapabilities(priorities=frozenset(), engine=ENGINE)
SIGNAL = "interlock_woken"
IDENTITY = "interlock"
RPC_TIMEOUT = timedelta(seconds=10)
RETRYABLE_CODES = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.UNKNOWN,
    }
)
UNKNOWN_CODES = frozenset({RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED})
ENDED_CODES = frozenset({RPCStatusCode.NOT_FOUND, RPCStatusCode.ALREADY_EXISTS})


class TemporalTarget(NamedTuple):
    """Where workflows are, and which type to start for an unknown id; without a type none is started."""

    target: str
    namespace: str
    workflow: str
    task_queue: str
    key: str
    tls: bool | TLSConfig


def connect(context: ChannelContext) -> TemporalChannel:
    settings = context.settings
    target, namespace = text_setting(settings, "target"), text_setting(settings, "namespace", "default")
    workflow, queue = text_setting(settings, "workflow", ""), text_setting(settings, "task_queue", "")
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit() or "/" in target:
        raise Misconfigured("target must be a host and a port, such as temporal.example.com:7233")
    if bool(workflow) != bool(queue):
        raise Misconfigured("workflow and task_queue must be set together")
    key = text_setting(settings, "api_key", "")
    return TemporalChannel(TemporalTarget(target, namespace, workflow, queue, key, _tls(settings, key)))


class TemporalChannel:
    def __init__(self, target: TemporalTarget) -> None:
        self._target = target
        self._client: Client | None = None

    async def send(self, message: Notification) -> str:
        """Signal a decided call; a test describes the namespace. All other messages are ignored."""
        match message.purpose, message.approval_view:
            case "woken", ApprovalView() as approval_view:
                await self._wake(message, approval_view)
            case "test", _:
                await self._call("test", DescribeNamespaceRequest(namespace=self._target.namespace))
            case _:
                pass
        return ""

    async def update(self, message: Notification, ref: str) -> str:
        return await self.send(message)

    async def close(self) -> None:
        self._client = None

    async def _wake(self, message: Notification, approval_view: ApprovalView) -> None:
        """Signal the workflow, with the same request id for every retry: Temporal drops duplicates."""
        workflow_id = approval_view.approval.subject.run_id.removeprefix(f"{ENGINE}:")
        words = await DataConverter.default.encode([{"approval_id": approval_view.approval.id}])
        if not self._target.workflow:
            await self._call(
                "wake",
                SignalWorkflowExecutionRequest(
                    namespace=self._target.namespace,
                    workflow_execution=WorkflowExecution(workflow_id=workflow_id),
                    signal_name=SIGNAL,
                    input=Payloads(payloads=words),
                    identity=IDENTITY,
                    request_id=message.id,
                ),
            )
            return
        await self._call(
            "wake",
            SignalWithStartWorkflowExecutionRequest(
                namespace=self._target.namespace,
                workflow_id=workflow_id,
                workflow_type=WorkflowType(name=self._target.workflow),
                task_queue=TaskQueue(name=self._target.task_queue),
                signal_name=SIGNAL,
                signal_input=Payloads(payloads=words),
                identity=IDENTITY,
                request_id=message.id,
                # A workflow that has ended is not started again: its calls are decided, and nothing waits for them.
                workflow_id_reuse_policy=WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
            ),
        )

    async def _call(
        self,
        purpose: Literal["wake", "test"],
        request: SignalWorkflowExecutionRequest | SignalWithStartWorkflowExecutionRequest | DescribeNamespaceRequest,
    ) -> None:
        try:
            service = (await self._connected()).workflow_service
            match request:
                case SignalWorkflowExecutionRequest():
                    await service.signal_workflow_execution(request, timeout=RPC_TIMEOUT)
                case SignalWithStartWorkflowExecutionRequest():
                    await service.signal_with_start_workflow_execution(request, timeout=RPC_TIMEOUT)
                case DescribeNamespaceRequest():
                    await service.describe_namespace(request, timeout=RPC_TIMEOUT)
        except RPCError as error:
            if purpose == "wake" and error.status in ENDED_CODES and not _lacks_namespace(error):
                return  # it has ended, or never existed: nothing waits
            raise _to_delivery_error(error) from None
        except RuntimeError:  # raised by the connection itself
            raise DeliveryDelayed("Temporal cannot be reached.") from None

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await Client.connect(
                self._target.target,
                namespace=self._target.namespace,
                api_key=self._target.key or None,
                tls=self._target.tls,
                identity=IDENTITY,
                lazy=True,
            )
        return self._client


def _to_delivery_error(error: RPCError) -> DeliveryDelayed | DeliveryRejected:
    """Translate an error without the server's own message, which may hold secrets."""
    if error.status in UNKNOWN_CODES:
        return DeliveryUnknown(f"Temporal did not respond within {RPC_TIMEOUT.seconds} seconds.")
    if error.status in RETRYABLE_CODES:
        return DeliveryDelayed(f"Temporal is not available ({error.status.name.lower()}).")
    if _lacks_namespace(error):
        return DeliveryRejected("Temporal does not have this namespace. Check the setting namespace.")
    return DeliveryRejected(f"Temporal rejected the request ({error.status.name.lower()}).")


def _lacks_namespace(error: RPCError) -> bool:
    return any(each.Is(NamespaceNotFoundFailure.DESCRIPTOR) for each in error.grpc_status.details)


def _tls(settings: Mapping[str, object], key: str) -> bool | TLSConfig:
    """Return the TLS settings; TLS is on if there is a key or a file for it: a key is never sent in plain text."""
    ca, certificate, private_key = (_pem(settings, name) for name in ("ca", "certificate", "private_key"))
    is_enabled = settings.get("tls", bool(key or ca or certificate))
    if not isinstance(is_enabled, bool):
        raise Misconfigured("tls must be true or false")
    if not is_enabled and (key or ca or certificate):
        raise Misconfigured("api_key, ca and certificate require tls: true")
    if (certificate is None) != (private_key is None):
        raise Misconfigured("certificate and private_key must be set together")
    own = TLSConfig(server_root_ca_cert=ca, client_cert=certificate, client_private_key=private_key)
    return own if ca or certificate else is_enabled


def _pem(settings: Mapping[str, object], name: str) -> bytes | None:
    path = text_setting(settings, name, "")
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError:
        raise Misconfigured(f"{name} must be a readable file") from None
