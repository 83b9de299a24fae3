"""Every error that Interlock raises, in one tree.

Error
├── InvalidRequest            400 invalid_request       the input is invalid
├── Unauthenticated           401 unauthenticated       no key or session, or an invalid one
├── TooManyRequests           429 too_many_requests     carries the seconds to wait
├── NotFound                  404 not_found
├── Forbidden                 403 forbidden             this person may not do this
│   └── RecentSignInRequired      recent_sign_in_required   the session's sign-in is too old for this
├── Conflict                  409 conflict
│   ├── AlreadyDecided            already_decided       carries the existing decision
│   ├── AlreadyStarted            already_started
│   ├── NotApproved               not_approved          a start without an approval
│   ├── Stale                     stale                 the row changed meanwhile
│   │   ├── DigestMismatch        digest_mismatch       the person saw other arguments
│   │   ├── CallMismatch          call_mismatch         a known call id with other arguments
│   │   └── BindingBroken         binding_broken        what is stored is not what was approved
│   ├── Frozen                    frozen                nothing in this scope starts now; carries the reason
│   ├── DeniedNow                 denied_now            the current policy denies it; 422 for a person's decision
│   └── LeaseLost                 lease_lost            the runner was too late
├── Expired                   410 expired
├── InvalidDecision           422 invalid_decision      carries JSON pointers
│   └── FindingsNotAcknowledged   findings_not_acknowledged
├── StoreUnavailable          503 store_unavailable
│   └── ClockBehind               clock_behind          the clock went back: approving is refused
├── Misconfigured             503 misconfigured         policy, settings or bootstrap; exit 2 on the command line
├── DeliveryFailed            a channel could not deliver
├── ModelFailed               502 model_failed          says whether a retry may help
├── ToolFailed                502 tool_failed           a tool ran and failed; the message is for the model and people
│   ├── CallWouldFail             call_would_fail       a look-up before the call shows that it cannot succeed
│   └── EffectUnknown             effect_unknown        it was sent, and no response says whether it ran
└── NotRun                    raised to the program whose call did not run
    ├── CallRefused               denied, rejected, expired or cancelled
    ├── CallAnswered              a person answered instead
    ├── CallFailed                the tool ran and failed, in this run or an earlier one
    └── CallUnknown               whether it ran is unknown
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem at one place in a JSON document."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


def did_you_mean(name: str, choices: Collection[str]) -> str:
    """The end of an error message: the closest name, or all names if they are few."""
    near = get_close_matches(name, choices, 1)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; it is one of {', '.join(sorted(choices))}" if 0 < len(choices) <= 12 else ""


class Error(Exception):
    """Base class: a code for programs, a message that says what to do next, and ids."""

    code = "error"
    status = 500

    def __init__(self, message: str, **ids: object) -> None:
        super().__init__(message)
        self.message = message
        self.ids = ids

    @property
    def pointers(self) -> tuple[str, ...]:
        """JSON Pointers to what is wrong in a body, where that is known."""
        problems = self.ids.get("problems")
        return tuple(str(problem["pointer"]) for problem in problems) if isinstance(problems, list) else ()

    def to_json(self) -> dict[str, object]:
        return {"error": self.code, "message": self.message, **self.ids}


class InvalidRequest(Error):
    code, status = "invalid_request", 400


class Unauthenticated(Error):
    code, status = "unauthenticated", 401


class TooManyRequests(Error):
    code, status = "too_many_requests", 429


class NotFound(Error):
    code, status = "not_found", 404


class Forbidden(Error):
    code, status = "forbidden", 403


class RecentSignInRequired(Forbidden):
    code = "recent_sign_in_required"


class Conflict(Error):
    code, status = "conflict", 409


class AlreadyDecided(Conflict):
    code = "already_decided"


class AlreadyStarted(Conflict):
    code = "already_started"


class NotApproved(Conflict):
    code = "not_approved"


class Stale(Conflict):
    code = "stale"


class DigestMismatch(Stale):
    code = "digest_mismatch"
    pointers = ("/args_sha256",)


class CallMismatch(Stale):
    code = "call_mismatch"


class BindingBroken(Stale):
    code = "binding_broken"


class Frozen(Conflict):
    code = "frozen"


class DeniedNow(Conflict):
    """Denied by the current policy: 409 at a start; `for_decision` gives the error for a person's decision."""

    code = "denied_now"

    def for_decision(self) -> DeniedNow:
        self.status = 422
        return self


class LeaseLost(Conflict):
    code = "lease_lost"


class Expired(Error):
    code, status = "expired", 410


ALREADY_DECIDED_ERRORS = (AlreadyDecided, Expired)  # errors for a decision on a decided or expired approval


class InvalidDecision(Error):
    code, status = "invalid_decision", 422

    def __init__(self, message: str, problems: Sequence[Problem] = (), **ids: object) -> None:
        super().__init__(message, **ids)
        self.problems = tuple(problems)

    @property
    def pointers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(problem.pointer for problem in self.problems))

    def to_json(self) -> dict[str, object]:
        problems = [{"pointer": p.pointer, "message": p.message} for p in self.problems]
        return {**super().to_json(), "problems": problems}


class FindingsNotAcknowledged(InvalidDecision):
    code = "findings_not_acknowledged"
    pointers = ("/acknowledged",)


class StoreUnavailable(Error):
    code, status = "store_unavailable", 503


class ClockBehind(StoreUnavailable):
    code = "clock_behind"


class Misconfigured(Error):
    code, status = "misconfigured", 503


class DeliveryFailed(Error):
    code, status = "delivery_failed", 502


class ModelFailed(Error):
    """A model call failed; `is_retryable`: a retry may succeed, as after a timeout, but not with a wrong key."""

    code, status = "model_failed", 502

    def __init__(self, message: str, *, is_retryable: bool = False, **ids: object) -> None:
        super().__init__(message, **ids)
        self.is_retryable = is_retryable


class ToolFailed(Error):
    code, status = "tool_failed", 502


class CallWouldFail(ToolFailed):
    """The call was refused before anybody was asked, since its preview showed that it would fail.

    That is for certain: what it names is not there or not valid. A timeout or a network error is a ToolFailed.
    """

    code = "call_would_fail"


class EffectUnknown(ToolFailed):
    code = "effect_unknown"


class NotRun(Error):
    """The tool's body did not run, or not to a known end; `result` is the message for the model."""

    code, status = "not_run", 409

    def __init__(self, message: str, result: object = None, **ids: object) -> None:
        super().__init__(message, **ids)
        self.result = result


class CallRefused(NotRun):
    code = "refused"


class CallAnswered(NotRun):
    code = "answered"


class CallFailed(NotRun):
    code = "failed"


class CallUnknown(NotRun):
    code = "unknown"
