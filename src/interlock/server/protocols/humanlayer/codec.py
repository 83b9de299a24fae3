"""What HumanLayer's SDK sends and reads: exactly these fields, of exactly these types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

from interlock.core.call import MAX_NAME, MAX_TEXT_LENGTH
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE
from interlock.core.errors import InvalidRequest
from interlock.server.http import RequestBody

MAX_OPTIONS = 100


class ResponseOption(RequestBody):
    """A ready answer; one that is `interactive` wants words of the person's own."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    title: str | None = None
    description: str | None = None
    prompt_fill: str | None = None
    interactive: bool = False

    @property
    def label(self) -> str:
        return self.title or self.name


CallId = Annotated[str, Field(pattern=r"^[^/?#%]+$")]  # it stands in an address, which the SDK writes as it is
ChannelSpecs = dict[str, dict[str, object] | None]
OptionList = Annotated[list[ResponseOption], Field(max_length=MAX_OPTIONS)] | None
AgentState = dict[str, object] | None


class FunctionCallSpec(RequestBody):
    fn: str
    kwargs: dict[str, object]
    channel: ChannelSpecs | None = None
    reject_options: OptionList = None
    state: AgentState = None


class FunctionCallBody(RequestBody):
    """A function that a program wants to run. What became of it is the server's to say: `status` stays empty."""

    run_id: str
    call_id: CallId
    spec: FunctionCallSpec
    status: None = None


class HumanContactSpec(RequestBody):
    msg: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_LENGTH)]
    subject: str | None = None
    channel: ChannelSpecs | None = None
    response_options: OptionList = None
    state: AgentState = None


class HumanContactBody(RequestBody):
    """A question to people."""

    run_id: str
    call_id: CallId
    spec: HumanContactSpec
    status: None = None


class FunctionCallAnswerBody(RequestBody):
    """A person's yes or no. Times are the server's own, whatever is given."""

    approved: bool
    comment: Annotated[str, Field(max_length=MAX_COMMENT)] | None = None
    reject_option_name: str | None = None
    requested_at: str | None = None
    responded_at: str | None = None
    slack_message_ts: str | None = None


class HumanContactAnswerBody(RequestBody):
    """A person's words, or one of the options by its name."""

    response: Annotated[str, Field(max_length=MAX_MESSAGE)] | None = None
    response_option_name: str | None = None
    requested_at: str | None = None
    responded_at: str | None = None


class EscalationBody(RequestBody):
    """The agent's words to those who decide. Whom they reach is the policy's business."""

    escalation_msg: str
    additional_recipients: Annotated[list[dict[str, object]], Field(max_length=MAX_OPTIONS)] | None = None
    channel: ChannelSpecs | None = None


class FunctionCallStatus(BaseModel):
    requested_at: str
    responded_at: str | None
    approved: bool | None
    comment: str | None
    reject_option_name: str | None
    slack_message_ts: None


class FunctionCall(BaseModel):
    """`approved` is null until a decision stands, and true in one answer only."""

    run_id: str
    call_id: str
    spec: dict[str, Any]
    status: FunctionCallStatus


class HumanContactStatus(BaseModel):
    requested_at: str
    responded_at: str | None
    response: str | None
    response_option_name: str | None


class HumanContact(BaseModel):
    """`response` is null until somebody answered."""

    run_id: str
    call_id: str
    spec: dict[str, Any]
    status: HumanContactStatus


def question_args(spec: HumanContactSpec) -> dict[str, object]:
    """Ready answers are all that can be chosen, unless one of them wants words."""
    args: dict[str, object] = {"question": spec.msg}
    args |= {"subject": spec.subject} if spec.subject is not None else {}
    options = spec.response_options or ()
    closed = options and not any(each.interactive for each in options)
    return args | ({"choices": [each.label for each in options]} if closed else {})


def agent_says_text(spec: FunctionCallSpec | HumanContactSpec) -> str:
    """All but the call is what the agent says: shown to people as such, and told back. Tokens are not kept."""
    options = spec.reject_options if isinstance(spec, FunctionCallSpec) else spec.response_options
    field = "reject_options" if isinstance(spec, FunctionCallSpec) else "response_options"
    names = [name for each in options or () for name in {each.name, each.label}]
    if len(names) != len(set(names)):
        raise InvalidRequest(f"{field} need names and titles of their own.")
    ways = {way: _without_token(told) for way, told in (spec.channel or {}).items() if told}
    said = {
        "channel": ways,
        field: [each.model_dump(exclude_defaults=True) for each in options or ()],
        "state": spec.state,
    }
    kept = {name: value for name, value in said.items() if value or (name == "state" and value is not None)}
    text = json.dumps(kept, ensure_ascii=False, indent=2) if kept else ""
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidRequest(
            f"channel, options and state have {len(text):,} characters; {MAX_TEXT_LENGTH:,} can be kept."
        )
    return text


def _without_token(told: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in told.items() if value is not None and name != "bot_token"}
