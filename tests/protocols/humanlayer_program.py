"""A program with HumanLayer's SDK as it is. Where the server is and by which key, it has from its environment."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from humanlayer import (
    AsyncHumanLayer,
    ContactChannel,
    EmailContactChannel,
    FunctionCallSpec,
    HumanContactSpec,
    HumanLayer,
    ResponseOption,
)
from humanlayer.core.models import Escalation, FunctionCallStatus, HumanContactStatus, SlackContactChannel

JOB: dict[str, Any] = json.loads(sys.argv[1])
SHORT_SLEEP = 0.02  # seconds between two looks, where its own default is 3
SCENARIOS: dict[str, Callable[[], Any]] = {}
LONG_SLEEP = ResponseOption(name="later", title="Not this month", prompt_fill="Ask again next month.")
RED, BLUE = ResponseOption(name="red", title="The red one"), ResponseOption(name="blue", title="The blue one")


def scenario(function: Callable[[], Any]) -> Callable[[], Any]:
    SCENARIOS[function.__name__] = function
    return function


def layer(sleep: Callable[[int], None] = lambda _: time.sleep(SHORT_SLEEP)) -> HumanLayer:
    return HumanLayer(run_id=JOB["run"], sleep=sleep)


def later() -> AsyncHumanLayer:
    return AsyncHumanLayer(run_id=JOB["run"], sleep=lambda _: asyncio.sleep(SHORT_SLEEP))


def send_mail(to: str, text: str) -> str:
    """Seen by the server that counts effects."""
    body = json.dumps({"tool": JOB["run"], "args": {"to": to, "text": text}}).encode()
    with urlopen(Request(JOB["effects"], body, {"content-type": "application/json"})) as done:  # noqa: S310  loopback
        return f"sent: {done.status}"


def spec(**more: Any) -> FunctionCallSpec:
    return FunctionCallSpec(fn="send_mail", kwargs={"to": "ann", "text": "hi"}, **more)


@scenario
def approval() -> Any:
    return layer().require_approval()(send_mail)(to="ann", text="hi")


@scenario
def approval_async() -> Any:
    async def run() -> Any:
        wrapped = later().require_approval().wrap(send_mail)
        return await wrapped(to="ann", text="hi")

    return asyncio.run(run())


@scenario
def other_names() -> Any:
    """Functions that the policy lets through, forbids, and gives people no time for."""

    def ran(to: str) -> str:
        return f"ran for {to}"

    ran.__name__ = JOB["fn"]
    return layer().require_approval()(ran)(to="ann")


@scenario
def options() -> Any:
    done = layer().fetch_approval(spec(reject_options=[LONG_SLEEP, ResponseOption(name="never")]))
    return done.call.model_dump(mode="json")


@scenario
def question() -> Any:
    return layer().human_as_tool()("Which colour?")


@scenario
def question_async() -> Any:
    return asyncio.run(_ask_question())


async def _ask_question() -> str:
    return str(await later().human_as_tool()("Which colour?"))


@scenario
def choice() -> Any:
    wanted = HumanContactSpec(msg="Which one?", subject="Colours", response_options=[RED, BLUE], state={"step": 7})
    return layer().fetch_human_response(wanted).contact.model_dump(mode="json")


@scenario
def channels() -> Any:
    """Everything that a spec can hold."""
    slack = SlackContactChannel(channel_or_user_id="C1", context_about_channel_or_user="the office", bot_token="xoxb-1")
    email = EmailContactChannel(address="boss@example.com", subject="Mails", additional_recipients=None)
    channel = ContactChannel(slack=slack, email=email)
    hl = layer()
    wanted = spec(channel=channel, state={"step": 7, "done": None})
    made = hl.create_function_call(wanted, call_id=JOB["call"])
    again = hl.create_function_call(wanted, call_id=JOB["call"])
    told = hl.escalate_email_function_call(JOB["call"], Escalation(escalation_msg="It is urgent."))
    asked = hl.create_human_contact(HumanContactSpec(msg="Well?", channel=channel), call_id=f"{JOB['call']}-q")
    hl.escalate_email_human_contact(asked.call_id, Escalation(escalation_msg="Nobody answers."))
    got = hl.get_function_call(JOB["call"])
    assert hl.get_human_contact(asked.call_id).spec == asked.spec
    assert made == again == told == got
    return got.model_dump(mode="json")


@scenario
def denial_in_slack() -> Any:
    slack = SlackContactChannel(channel_or_user_id="C1", context_about_channel_or_user="the office")
    return layer().require_approval(ContactChannel(slack=slack))(send_mail)(to="ann", text="hi")


@scenario
def looking() -> Any:
    """Runs the function if it is told to, as the SDK does; asked of by somebody else, maybe at the same time."""
    hl = layer()
    while (status := hl.get_function_call(JOB["call"]).status) is None or status.approved is None:
        hl.sleep(3)
    return send_mail(to="ann", text="hi") if status.approved else status.comment


@scenario
def with_a_break() -> Any:
    """Between two looks it waits until a file is there; the first wait says so."""
    begun, go = Path(JOB["begun"]), Path(JOB["go"])

    def sleep(_: int) -> None:
        begun.touch()
        while not go.exists():
            time.sleep(SHORT_SLEEP)

    return layer(sleep).require_approval()(send_mail)(to="ann", text="hi")


@scenario
def deciding() -> Any:
    """With somebody's key: a person's decides, an agent's does not."""
    said = FunctionCallStatus(**JOB["status"])
    return layer().respond_to_function_call(JOB["call"], said).model_dump(mode="json")


@scenario
def answering() -> Any:
    said = HumanContactStatus(**JOB["status"])
    return layer().respond_to_human_contact(JOB["call"], said).model_dump(mode="json")


if __name__ == "__main__":
    try:
        told = SCENARIOS[JOB["story"]]()
    except Exception as error:  # noqa: BLE001  what the SDK raises is what is looked at
        told = {"raised": str(error)}
    print(json.dumps(told))
