"""JSON of the HTTP API to and from SDK types: outcomes, executions, pauses, errors, proposals and decisions."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from interlock.app.gate import Execution
from interlock.core.approval.discussion import Question
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.decision import Approve, Decision, Edit, Reject, Respond
from interlock.core.errors import (
    AlreadyDecided,
    Conflict,
    Error,
    InvalidDecision,
    InvalidRequest,
    Misconfigured,
    Problem,
    StoreUnavailable,
)
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.core.run import Pause
from interlock.runtime.durations import format_duration, parse_rfc3339
from interlock.sdk.backend import ApprovalDecision, ApprovalRecord, ApprovalRecords, ApprovalStats

T = TypeVar("T")
ResponseBody = Mapping[str, Any]
WRONG_HOST = "wrong_host"
MAX_SHOWN_FIELDS = 10  # of an answer that is not understood
# What reading an answer of another form than expected can raise.
ANSWER_ERRORS = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
_RECORD_FIELDS = tuple(
    each.name
    for each in fields(ApprovalRecord)
    if each.name not in ("agent_path", "created_at", "expires_at", "decision", "args", "result", "error")
)


@dataclass(frozen=True, slots=True)
class RemoteApprovalStatus:
    """The status of an approval, as far as the server shows it to an agent."""

    id: str
    status: str


def parse_answer(parse: Callable[[ResponseBody], T], body: ResponseBody, url: str, note: str = "") -> T:
    """Parse an answer; raises Misconfigured if it has another form than this program knows. `note` ends the error."""
    try:
        return parse(body)
    except ANSWER_ERRORS as error:
        raise not_understood_error(url, f"{explain_answer_error(error)}; {_fields_text(body)}", note) from error


def explain_answer_error(error: Exception) -> str:
    match error:
        case KeyError(args=(str(name), *_)):
            return f"there is no {shown(name)} in it"
        case _:
            return f"{type(error).__name__}: {shown(str(error))}"


def not_understood_error(url: str, what: str, note: str = "") -> Misconfigured:
    advice = "Check the address, and upgrade the older one of this program and the server."
    return Misconfigured(f"The answer of {url} was not understood ({what}). {advice} {note}".rstrip())


def shown(text: str, limit: int = 100) -> str:
    """The beginning of a text from elsewhere, without what could control a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:limit])


def _fields_text(body: ResponseBody) -> str:
    """The names of an answer's fields; their values may be secret."""
    names = [shown(name, 30) for name in list(body)[:MAX_SHOWN_FIELDS]]
    more = ", …" if len(body) > MAX_SHOWN_FIELDS else ""
    return f"its fields: {', '.join(names)}{more}" if names else "it is empty"


def parse_outcome(body: ResponseBody) -> Outcome:
    """Parse an outcome. An unknown one raises, so that the call does not run."""
    approval_id, sha256 = body.get("approval_id", ""), body.get("args_sha256", "")
    match body["outcome"]:
        case "proceed":
            return Proceed(canonical(_field(body, "args", dict)), approval_id, sha256)
        case "waiting":
            until = body.get("until")
            moment = None if until is None else parse_rfc3339(until)
            return Waiting(
                approval_id,
                _field(body, "status", str),
                until=moment,
                args_sha256=sha256,
                questions=tuple(map(int, body.get("questions", ()))),
            )
        case "refused":
            return Refused(_field(body, "reason", str), _field(body, "status", str), approval_id, sha256)
        case "answered":
            return Answered(body["message"], approval_id, sha256)
        case "finished":
            return Finished(
                _field(body, "status", str), body.get("result"), body.get("error") or "", approval_id, sha256
            )
        case other:
            raise ValueError(f"an unknown outcome, {other!r}")


def parse_execution(approval_id: str, body: ResponseBody) -> Execution:
    until = parse_rfc3339(body["lease_until"])
    args, key = canonical(_field(body, "args", dict)), _field(body, "idempotency_key", str)
    return Execution(approval_id, _field(body, "fence", int), args, key, until)


def parse_approval_status(approval_id: str, body: ResponseBody) -> RemoteApprovalStatus:
    return RemoteApprovalStatus(approval_id, _field(body, "status", str))


def _field(body: ResponseBody, name: str, kind: type[T]) -> T:
    value = body[name]
    if type(value) is not kind:
        raise ValueError(f"{name} is of another type")
    return value


def parse_questions(body: ResponseBody) -> Sequence[Question]:
    return [Question(int(each["number"]), str(each["by"]), str(each["text"])) for each in body["items"]]


def parse_me(body: ResponseBody) -> ResponseBody:
    """The user of a key; other fields are passed on."""
    return {**body, "name": str(body["name"]), "role": str(body["role"])}


def parse_runs(body: ResponseBody) -> Sequence[ResponseBody]:
    return [{**each, "runner": str(each["runner"])} for each in body["items"]]


def parse_acquired_run(body: ResponseBody) -> ResponseBody:
    bytes.fromhex(body["key"])
    return {**body, "run_id": str(body["run_id"])}


def parse_approval_records(body: ResponseBody) -> ApprovalRecords:
    return ApprovalRecords([parse_approval_record(item) for item in body["items"]], body["next"])


def parse_approval_record(body: ResponseBody) -> ApprovalRecord:
    """Parse an approval, of a list or a single one; fields that this program does not know are ignored."""
    return ApprovalRecord(
        **{name: body[name] for name in _RECORD_FIELDS},
        agent_path=tuple(body["agent_path"]),
        created_at=_moment(body["created_at"]),
        expires_at=_moment(body["expires_at"]),
        decision=_parse_decision(body["decision"]),
        args=body.get("args"),
        result=body.get("result"),
        error=body.get("error_message"),
    )


def parse_approval_stats(body: ResponseBody) -> ApprovalStats:
    return ApprovalStats(**{each.name: body[each.name] for each in fields(ApprovalStats)})


def parse_pause(body: ResponseBody, state: bytes = b"") -> Pause:
    kept = b64decode(body["state"]) if "state" in body else state
    return Pause(
        run_id=body["called"],
        agent=body["agent"],
        state=kept,
        paused_at=parse_rfc3339(body["paused_at"]),
        fence=body["fence"],
        attempts=body["attempts"],
        waiting=body.get("waiting", 0),
        runner=body.get("runner", ""),
        short_id=body["run_id"],
    )


def parse_pauses(body: ResponseBody) -> tuple[Sequence[Pause], str | None]:
    """A page of paused runs, and the cursor of the next one."""
    cursor = body["next"]
    return [parse_pause(each) for each in body["items"]], None if cursor is None else str(cursor)


def parse_claimed_pauses(body: ResponseBody) -> tuple[Sequence[Pause], Sequence[str]]:
    """The runs that were acquired, and the runners that hold others."""
    return [parse_pause(each) for each in body["items"]], [str(each) for each in body["held"]]


def parse_error(status: int, body: ResponseBody) -> Error:
    """The error class that matches the code; for codes that only a server has, the nearest class of the SDK."""
    ids = {name: value for name, value in body.items() if name not in ("error", "message")}
    code, message = body["error"], body["message"]
    kind = dict(_error_classes(Error)).get(code)
    if kind is None:
        return _nearest_error_class(status, code)(message, **ids)
    if issubclass(kind, InvalidDecision):
        problems = [Problem(each["pointer"], each["message"]) for each in ids.pop("problems", ())]
        return kind(message, problems, **ids)
    if kind is AlreadyDecided and isinstance(ids.get("decision"), dict):
        ids["decision"] = {**ids["decision"], "at": parse_rfc3339(ids["decision"]["at"])}
    return kind(message, **ids)


def declared_spec(spec: ToolSpec) -> ToolSpec:
    """The spec as the server sees it, without what only this program has: description, preview and confirmation."""
    return replace(spec, describe="", preview=None, confirm="", declared=True)


def proposal_json(call: ToolCall, spec: ToolSpec, description: str, preview: str) -> dict[str, object]:
    return {
        "tool": call.tool,
        "args": read_canonical(call.args),
        **_call_json(call),
        **_without_empty(
            description=description,
            preview=preview,
            schema=spec.schema,
            effect=spec.effect,
            idempotent=spec.idempotent,
            secret=spec.secret,
            decisions=spec.decisions,
        ),
    }


def question_json(call: ToolCall) -> dict[str, object]:
    return {**call.parsed_args, **_call_json(call)}


def decision_json(decision: Decision) -> dict[str, object]:
    seen = decision.seen
    body: dict[str, object] = {
        "kind": decision.kind,
        "args_sha256": seen.args_sha256,
        "acknowledged": seen.acknowledged,
        "reason": seen.reason,
        "comment": seen.comment,
    }
    match decision:
        case Edit():
            body["args"] = read_canonical(decision.data)
        case Respond(message, answer):
            body |= {"message": message, "answer": answer}
        case Reject(reason):
            body["reason"] = reason or seen.reason
        case Approve():
            pass
    return _without_empty(**body)


def _call_json(call: ToolCall) -> dict[str, object]:
    return {
        "run_id": call.run_id,
        "call_id": call.call_id,
        "setting": call.setting,
        **_without_empty(
            switch=call.switch,
            thread_id=call.thread_id,
            agent=call.agent,
            agent_path=call.agent_path,
            initiated_by=call.requester,
            priority=call.priority,
            agent_says=call.agent_says,
            expires_in="" if call.expires_in is None else format_duration(call.expires_in),
        ),
    }


def _without_empty(**fields: object) -> dict[str, object]:
    """Drop empty fields; a false or empty `answer` is kept."""
    unsaid = (None, "", (), False)
    return {
        name: value for name, value in fields.items() if (name == "answer" and value is not None) or value not in unsaid
    }


def _parse_decision(body: ResponseBody | None) -> ApprovalDecision | None:
    if body is None:
        return None
    known = {each.name: body[each.name] for each in fields(ApprovalDecision) if each.name in body}
    return ApprovalDecision(**{**known, "at": _moment(body["at"])})


def _moment(text: str) -> datetime:
    return datetime.fromtimestamp(parse_rfc3339(text) / 1000, UTC)


def _error_classes(kind: type[Error]) -> Iterator[tuple[str, type[Error]]]:
    yield kind.code, kind
    for each in kind.__subclasses__():
        if each.__module__ == Error.__module__:
            yield from _error_classes(each)


def _nearest_error_class(status: int, code: str) -> type[Error]:
    if code == WRONG_HOST:
        return Misconfigured
    if status >= 500:
        return StoreUnavailable
    return Conflict if status == 409 else InvalidRequest
