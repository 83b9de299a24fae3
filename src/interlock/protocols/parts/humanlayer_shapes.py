"""What HumanLayer's SDK sends and reads: exactly these fields, of exactly these types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from interlock.core.call import MAX_NAME, MAX_WORDS
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE
from interlock.web.asgi import Body

MAX_OPTIONS = 100


class Option(Body):
    """A ready answer; one that is `interactive` wants words of the person's own."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    title: str | None = None
    description: str | None = None
    prompt_fill: str | None = None
    interactive: bool = False

    @property
    def label(self) -> str:
        return self.title or self.name


Channels = dict[str, dict[str, object] | None]
Options = Annotated[list[Option], Field(max_length=MAX_OPTIONS)] | None
State = dict[str, object] | None


class CallSpec(Body):
    fn: str
    kwargs: dict[str, object]
    channel: Channels | None = None
    reject_options: Options = None
    state: State = None


class NewFunctionCall(Body):
    """A function that a program wants to run. What became of it is the server's to say: `status` stays empty."""

    run_id: str
    call_id: str
    spec: CallSpec
    status: None = None


class ContactSpec(Body):
    msg: Annotated[str, Field(min_length=1, max_length=MAX_WORDS)]
    subject: str | None = None
    channel: Channels | None = None
    response_options: Options = None
    state: State = None


class NewHumanContact(Body):
    """A question to people."""

    run_id: str
    call_id: str
    spec: ContactSpec
    status: None = None


class CallAnswer(Body):
    """A person's yes or no. Times are the server's own, whatever is given."""

    approved: bool
    comment: Annotated[str, Field(max_length=MAX_COMMENT)] | None = None
    reject_option_name: str | None = None
    requested_at: str | None = None
    responded_at: str | None = None
    slack_message_ts: str | None = None


class ContactAnswer(Body):
    """A person's words, or one of the options by its name."""

    response: Annotated[str, Field(max_length=MAX_MESSAGE)] | None = None
    response_option_name: str | None = None
    requested_at: str | None = None
    responded_at: str | None = None


class Escalation(Body):
    """The agent's words to those who decide. Whom they reach is the policy's business."""

    escalation_msg: str
    additional_recipients: Annotated[list[dict[str, object]], Field(max_length=MAX_OPTIONS)] | None = None
    channel: Channels | None = None


class CallStatus(BaseModel):
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
    status: CallStatus


class ContactStatus(BaseModel):
    requested_at: str
    responded_at: str | None
    response: str | None
    response_option_name: str | None


class HumanContact(BaseModel):
    """`response` is null until somebody answered."""

    run_id: str
    call_id: str
    spec: dict[str, Any]
    status: ContactStatus
