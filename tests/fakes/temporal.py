"""A fake of Temporal's WorkflowService, behind the real client and the real worker of its SDK.

It keeps histories as Temporal does, hands out workflow and activity tasks, and takes signals. Time is the test's:
timers fire and tasks time out when it says so. What its rules rest on:

- documented: kinds and order of events; a signal is dropped if its request id was seen; signal with start begins a
  workflow only if none has the id, and refuses with ALREADY_EXISTS under REJECT_DUPLICATE; NOT_FOUND for a workflow
  that has ended; an activity that times out is tried again without an event of its own.
- seen in the SDK: what it asks for when it connects, the fields of tasks that it reads, flags that a replay needs.
- assumed: events that come while a workflow task is under way are written behind its commands.

Not there: queries, updates, children, sticky queues, heartbeats, retention, and limits.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import GrpcStatus, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import CommandType, EventType, WorkflowIdReusePolicy
from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.api.history.v1 import History, HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceResponse,
    GetSystemInfoResponse,
    GetWorkflowExecutionHistoryResponse,
    PollActivityTaskQueueResponse,
    PollWorkflowTaskQueueResponse,
    RespondActivityTaskCompletedResponse,
    RespondActivityTaskFailedResponse,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedResponse,
    ShutdownWorkerResponse,
    SignalWithStartWorkflowExecutionResponse,
    SignalWorkflowExecutionResponse,
    StartWorkflowExecutionResponse,
    WorkflowServiceServicer,
    add_WorkflowServiceServicer_to_server,
)
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

TIMEOUT = 60.0  # seconds for what a test waits for
LONG_POLL = 20.0
END_EVENTS = {
    CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION: "workflow_execution_completed",
    CommandType.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION: "workflow_execution_failed",
    CommandType.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION: "workflow_execution_canceled",
}
CLOSED = frozenset(end.upper() for end in END_EVENTS.values())


@dataclass
class SignalFailure:
    """What every signal is answered instead."""

    code: grpc.StatusCode
    words: str = ""


@dataclass
class Activity:
    scheduled: int
    command: Any
    attempt: int = 1
    is_taken: bool = False


@dataclass
class Run:
    """One workflow execution. `due` is a workflow task that nobody has yet, `taken` one that somebody has."""

    workflow_id: str
    type: str
    queue: str
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    events: list[HistoryEvent] = field(default_factory=list)
    buffered: list[Callable[[], object]] = field(default_factory=list)
    due: int = 0
    taken: int = 0
    scheduled: int = 0  # the event of what is due or taken
    last_started: int = 0
    activities: dict[int, Activity] = field(default_factory=dict)
    timers: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    @property
    def kinds(self) -> list[str]:
        return [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in self.events]

    @property
    def is_closed(self) -> bool:
        return self.kinds[-1] in CLOSED

    @property
    def execution(self) -> WorkflowExecution:
        return WorkflowExecution(workflow_id=self.workflow_id, run_id=self.run_id)

    @property
    def history(self) -> WorkflowHistory:
        return WorkflowHistory(self.workflow_id, self.events)

    def write(self, kind: str, **attributes: Any) -> int:
        event = HistoryEvent(event_id=len(self.events) + 1, event_type=EventType.Value(f"EVENT_TYPE_{kind.upper()}"))
        event.event_time.GetCurrentTime()
        getattr(event, f"{kind}_event_attributes").CopyFrom(_attributes(kind, attributes))
        self.events.append(event)
        return event.event_id

    def append_event(self, write: Callable[[], object]) -> None:
        """From outside: it waits behind a workflow task that somebody has."""
        if self.taken:
            self.buffered.append(write)
        elif not self.is_closed:
            write()
            self.wake()

    def events_of_kind(self, kind: str, **attributes: Any) -> None:
        self.append_event(lambda: self.write(kind, **attributes))

    def wake(self) -> None:
        if not self.due and not self.taken and not self.is_closed:
            queue = TaskQueue(name=self.queue)
            self.due = self.scheduled = self.write("workflow_task_scheduled", task_queue=queue, attempt=1)


class Temporal(WorkflowServiceServicer):  # type: ignore[misc]
    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.signals: list[Any] = []  # every request, also one that was refused
        self.failures: list[str] = []  # of activities
        self.broken: list[str] = []  # of workflows: they are not deterministic, or cannot be read
        self.signal_failure: SignalFailure | None = None
        self.namespace = "default"
        self.target = ""
        self.polls = 0
        self.before_result: Callable[[], object] | None = None  # once, before what an activity gave is written
        self._changed = threading.Condition()
        self._is_closing = False

    # What a test does

    def start(self, workflow_id: str, kind: str, *args: Any, queue: str = "refunds") -> Run:
        with self._changed:
            return self._start_run(workflow_id, kind, queue, Payloads(payloads=_payloads(args)))

    def signal(self, workflow_id: str, name: str, *args: Any) -> None:
        """By somebody who may send signals there."""
        with self._changed:
            run = self.runs[workflow_id]
            run.events_of_kind(
                "workflow_execution_signaled", signal_name=name, input=Payloads(payloads=_payloads(args)), identity="x"
            )
            self._changed.notify_all()

    def cancel(self, workflow_id: str) -> None:
        with self._changed:
            self.runs[workflow_id].events_of_kind("workflow_execution_cancel_requested", identity="x")
            self._changed.notify_all()

    def fire(self, workflow_id: str) -> None:
        """As if the time had passed of every timer that runs."""
        with self._changed:
            run = self.runs[workflow_id]
            for timer, started in list(run.timers.items()):
                del run.timers[timer]
                run.events_of_kind("timer_fired", timer_id=timer, started_event_id=started)
            self._changed.notify_all()

    def time_out(self) -> None:
        """Whoever had a task is gone: everything that was handed out is handed out again."""
        with self._changed:
            for run in self.runs.values():
                if run.taken:
                    ids = {"scheduled_event_id": run.scheduled, "started_event_id": run.taken}
                    run.taken = 0
                    run.write("workflow_task_timed_out", **ids)
                    self._flush(run)
                for activity in run.activities.values():
                    activity.attempt += activity.is_taken
                    activity.is_taken = False
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.broken or holds(), TIMEOUT) or self.broken:
                seen = {name: run.kinds[-5:] for name, run in self.runs.items() if not run.is_closed}
                raise AssertionError(f"Waited in vain until {what}. {seen} {self.failures} {self.broken}")

    def wait_ended(self, workflow_id: str) -> Any:
        """The result, or the failure, once there is one. Nothing, if it was cancelled."""
        run = self.runs[workflow_id]
        self.wait_until(lambda: run.is_closed, f"{workflow_id} ends")
        last = run.events[-1]
        if run.kinds[-1] == "WORKFLOW_EXECUTION_FAILED":
            return last.workflow_execution_failed_event_attributes.failure
        if run.kinds[-1] == "WORKFLOW_EXECUTION_CANCELED":
            return None
        payloads = last.workflow_execution_completed_event_attributes.result.payloads
        return DataConverter.default.payload_converter.from_payloads(list(payloads))[0]

    def wait_parked(self, workflow_id: str, times: int = 1) -> None:
        """Until it waits for people, for this many looks."""
        run = self.runs[workflow_id]
        self.wait_until(
            lambda: run.kinds.count("TIMER_STARTED") >= times and bool(run.timers) and not run.taken,
            f"{workflow_id} waits",
        )

    # Clients

    def GetSystemInfo(self, _: Any, __: grpc.ServicerContext) -> GetSystemInfoResponse:
        wanted = GetSystemInfoResponse.Capabilities(
            sdk_metadata=True, internal_error_differentiation=True, activity_failure_include_heartbeat=True
        )
        return GetSystemInfoResponse(server_version="1.29.0", capabilities=wanted)

    def DescribeNamespace(self, request: Any, context: grpc.ServicerContext) -> DescribeNamespaceResponse:
        self._check_namespace(request, context)
        made = DescribeNamespaceResponse()
        made.namespace_info.name = request.namespace
        return made

    def StartWorkflowExecution(self, request: Any, context: grpc.ServicerContext) -> StartWorkflowExecutionResponse:
        self._check_namespace(request, context)
        with self._changed:
            run = self._start_run(
                request.workflow_id, request.workflow_type.name, request.task_queue.name, request.input
            )
        return StartWorkflowExecutionResponse(run_id=run.run_id, started=True)

    def SignalWorkflowExecution(self, request: Any, context: grpc.ServicerContext) -> SignalWorkflowExecutionResponse:
        self._receive_signal(request, context)
        with self._changed:
            run = self.runs.get(request.workflow_execution.workflow_id)
            if run is None or run.is_closed:
                _refuse(context, grpc.StatusCode.NOT_FOUND, "workflow execution already completed")
            self._signal(run, request, request.input)
        return SignalWorkflowExecutionResponse()

    def SignalWithStartWorkflowExecution(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._receive_signal(request, context)
        with self._changed:
            run = self.runs.get(request.workflow_id)
            if run is not None and run.is_closed:
                assert request.workflow_id_reuse_policy == (
                    WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
                ), "it would begin again"
                _refuse(context, grpc.StatusCode.ALREADY_EXISTS, "Workflow execution already finished.")
            run = run or self._start_run(request.workflow_id, request.workflow_type.name, request.task_queue.name)
            self._signal(run, request, request.signal_input)
        return SignalWithStartWorkflowExecutionResponse(run_id=run.run_id)

    def GetWorkflowExecutionHistory(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Only as a client asks that waits for the result."""
        run = self.runs[request.execution.workflow_id]
        with self._changed:
            self._changed.wait_for(lambda: run.is_closed or not context.is_active() or self._is_closing, LONG_POLL)
        events = run.events[-1:] if run.is_closed else []
        token = b"" if run.is_closed else b"more"
        return GetWorkflowExecutionHistoryResponse(history=History(events=events), next_page_token=token)

    # Workers

    def PollWorkflowTaskQueue(self, request: Any, context: grpc.ServicerContext) -> PollWorkflowTaskQueueResponse:
        def found() -> Run | None:
            return next((run for run in self.runs.values() if run.due and run.queue == request.task_queue.name), None)

        with self._poll(found, context) as run:
            if run is None:
                return PollWorkflowTaskQueueResponse()
            run.taken = run.write("workflow_task_started", scheduled_event_id=run.due, request_id=str(uuid.uuid4()))
            run.due, before, run.last_started = 0, run.last_started, run.taken
            made = PollWorkflowTaskQueueResponse(
                task_token=f"{run.workflow_id} {run.taken}".encode(),
                workflow_execution=run.execution,
                workflow_type=WorkflowType(name=run.type),
                previous_started_event_id=before,
                started_event_id=run.taken,
                attempt=1,
                history=History(events=run.events),
                workflow_execution_task_queue=TaskQueue(name=run.queue),
            )
            made.scheduled_time.GetCurrentTime()
            made.started_time.GetCurrentTime()
            return made

    def RespondWorkflowTaskCompleted(self, request: Any, context: grpc.ServicerContext) -> Any:
        with self._changed:
            run, started = self._find_task(request, context)
            ids = {"scheduled_event_id": run.scheduled, "started_event_id": started}
            completed = run.write("workflow_task_completed", **ids, sdk_metadata=request.sdk_metadata)
            run.taken = 0
            for command in request.commands:
                self._run_command(run, command, completed)
            self._flush(run)
            self._changed.notify_all()
        return RespondWorkflowTaskCompletedResponse()

    def RespondWorkflowTaskFailed(self, request: Any, context: grpc.ServicerContext) -> Any:
        """A workflow that is not deterministic, or broken: the test is told, and nothing is tried again."""
        with self._changed:
            run, started = self._find_task(request, context)
            self.broken.append(request.failure.message)
            ids = {"scheduled_event_id": run.scheduled, "started_event_id": started}
            run.write("workflow_task_failed", **ids, failure=request.failure)
            run.taken = 0
            self._changed.notify_all()
        return RespondWorkflowTaskFailedResponse()

    def PollActivityTaskQueue(self, request: Any, context: grpc.ServicerContext) -> PollActivityTaskQueueResponse:
        def found() -> tuple[Run, Activity] | None:
            for run in self.runs.values():
                for activity in run.activities.values():
                    if not activity.is_taken and activity.command.task_queue.name == request.task_queue.name:
                        return run, activity
            return None

        with self._poll(found, context) as due:
            if due is None:
                return PollActivityTaskQueueResponse()
            run, activity = due
            activity.is_taken = True
            command = activity.command
            made = PollActivityTaskQueueResponse(
                task_token=f"{run.workflow_id} {activity.scheduled} {activity.attempt}".encode(),
                workflow_namespace=self.namespace,
                workflow_type=WorkflowType(name=run.type),
                workflow_execution=run.execution,
                activity_type=command.activity_type,
                activity_id=command.activity_id,
                input=command.input,
                attempt=activity.attempt,
                schedule_to_close_timeout=command.schedule_to_close_timeout,
                start_to_close_timeout=command.start_to_close_timeout,
                heartbeat_timeout=command.heartbeat_timeout,
                retry_policy=command.retry_policy,
            )
            for moment in (made.scheduled_time, made.current_attempt_scheduled_time, made.started_time):
                moment.GetCurrentTime()
            return made

    def RespondActivityTaskCompleted(self, request: Any, context: grpc.ServicerContext) -> Any:
        before, self.before_result = self.before_result, None
        if before is not None:
            before()
        with self._changed:
            run, activity = self._find_activity(request, context)
            self._end_activity(run, activity, "activity_task_completed", result=request.result)
            self._changed.notify_all()
        return RespondActivityTaskCompletedResponse()

    def RespondActivityTaskFailed(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Tried again at once, unless it says that it must not be."""
        with self._changed:
            run, activity = self._find_activity(request, context)
            self.failures.append(request.failure.message)
            if request.failure.application_failure_info.non_retryable:
                self._end_activity(run, activity, "activity_task_failed", failure=request.failure)
            else:
                activity.attempt, activity.is_taken = activity.attempt + 1, False
            self._changed.notify_all()
        return RespondActivityTaskFailedResponse()

    def ShutdownWorker(self, _: Any, __: grpc.ServicerContext) -> ShutdownWorkerResponse:
        return ShutdownWorkerResponse()

    # Within

    def _start_run(self, workflow_id: str, kind: str, queue: str, given: Payloads | None = None) -> Run:
        run = self.runs[workflow_id] = Run(workflow_id, kind, queue)
        run.write(
            "workflow_execution_started",
            workflow_type=WorkflowType(name=kind),
            workflow_id=workflow_id,
            task_queue=TaskQueue(name=queue),
            input=given or Payloads(),
            original_execution_run_id=run.run_id,
            first_execution_run_id=run.run_id,
            workflow_task_timeout=Duration(seconds=10),
            attempt=1,
        )
        run.wake()
        self._changed.notify_all()
        return run

    def _run_command(self, run: Run, command: Any, completed: int) -> None:
        by = {"workflow_task_completed_event_id": completed}
        match command.command_type:
            case CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:
                told = command.schedule_activity_task_command_attributes
                names = ("activity_id", "activity_type", "task_queue", "input", "start_to_close_timeout")
                same = {name: getattr(told, name) for name in (*names, "retry_policy", "header")}
                number = run.write("activity_task_scheduled", **same, **by)
                run.activities[number] = Activity(number, told)
            case CommandType.COMMAND_TYPE_START_TIMER:
                told = command.start_timer_command_attributes
                length = told.start_to_fire_timeout
                number = run.write("timer_started", timer_id=told.timer_id, start_to_fire_timeout=length, **by)
                run.timers[told.timer_id] = number
            case CommandType.COMMAND_TYPE_CANCEL_TIMER:
                timer = command.cancel_timer_command_attributes.timer_id
                run.write("timer_canceled", timer_id=timer, started_event_id=run.timers.pop(timer), **by)
            case kind if kind in END_EVENTS:
                told = getattr(command, command.WhichOneof("attributes"))
                what = {name: getattr(told, name) for name in ("result", "failure", "details") if hasattr(told, name)}
                run.write(END_EVENTS[kind], **what, **by)
                run.timers.clear()
            case kind:
                raise AssertionError(f"The stand-in does not know {CommandType.Name(kind)}.")

    def _flush(self, run: Run) -> None:
        """What waited behind the task comes now. A task that was lost is due again also without anything new."""
        waiting, run.buffered = run.buffered, []
        for write in waiting:
            run.append_event(write)
        if run.kinds[-1] == "WORKFLOW_TASK_TIMED_OUT":
            run.wake()

    def _end_activity(self, run: Run, activity: Activity, kind: str, **attributes: Any) -> None:
        """The event of its start is written when it has ended."""
        del run.activities[activity.scheduled]

        def write() -> None:
            ids = {"scheduled_event_id": activity.scheduled}
            started = run.write("activity_task_started", **ids, attempt=activity.attempt)
            run.write(kind, **ids, started_event_id=started, **attributes)

        run.append_event(write)

    def _signal(self, run: Run, request: Any, given: Payloads) -> None:
        if request.request_id not in run.seen:
            run.seen.add(request.request_id)
            run.events_of_kind(
                "workflow_execution_signaled", signal_name=request.signal_name, input=given, identity="channel"
            )
        self._changed.notify_all()

    def _receive_signal(self, request: Any, context: grpc.ServicerContext) -> None:
        self.signals.append(request)
        if self.signal_failure is not None:
            _refuse(context, self.signal_failure.code, self.signal_failure.words)
        self._check_namespace(request, context)

    def _check_namespace(self, request: Any, context: grpc.ServicerContext) -> None:
        if request.namespace != self.namespace:
            failure = NamespaceNotFoundFailure(namespace=request.namespace)
            _refuse(context, grpc.StatusCode.NOT_FOUND, f"Namespace {request.namespace} is not found.", failure)

    def _find_task(self, request: Any, context: grpc.ServicerContext) -> tuple[Run, int]:
        workflow_id, started = request.task_token.decode().split()
        run = self.runs[workflow_id]
        if run.taken != int(started):
            _refuse(context, grpc.StatusCode.NOT_FOUND, "Workflow task not found.")
        return run, int(started)

    def _find_activity(self, request: Any, context: grpc.ServicerContext) -> tuple[Run, Activity]:
        workflow_id, scheduled, attempt = request.task_token.decode().split()
        run = self.runs[workflow_id]
        activity = run.activities.get(int(scheduled))
        if activity is None or activity.attempt != int(attempt) or not activity.is_taken:
            _refuse(context, grpc.StatusCode.NOT_FOUND, "activity not found or already completed")
        return run, activity

    @contextmanager
    def _poll(self, found: Callable[[], Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """What there is to do, or None after a while; nothing is handed to somebody who is gone."""
        with self._changed:
            context.add_callback(self._close_polls)
            self.polls += 1
            self._changed.notify_all()
            try:
                self._changed.wait_for(
                    lambda: found() is not None or not context.is_active() or self._is_closing, LONG_POLL
                )
                yield found() if context.is_active() and not self._is_closing else None
            finally:
                self.polls -= 1
                self._changed.notify_all()

    def _close_polls(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()


@contextmanager
def temporal() -> Iterator[Temporal]:
    there = Temporal()
    server = grpc.server(ThreadPoolExecutor(64), options=[("grpc.so_reuseport", 0)])
    add_WorkflowServiceServicer_to_server(there, server)
    there.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield there
    finally:
        there.close()
        server.stop(5).wait()


def _attributes(kind: str, given: dict[str, Any]) -> Any:
    made = type(getattr(HistoryEvent(), f"{kind}_event_attributes"))
    return made(**given)


def _payloads(args: tuple[Any, ...]) -> Any:
    return DataConverter.default.payload_converter.to_payloads(args)


def _refuse(context: grpc.ServicerContext, code: grpc.StatusCode, words: str, detail: Any = None) -> NoReturn:
    status = GrpcStatus(code=code.value[0], message=words)
    if detail is not None:
        packed = Packed()
        packed.Pack(detail)
        status.details.append(packed)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, words)
    raise AssertionError("It was refused.")
