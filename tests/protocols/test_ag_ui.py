"""AG-UI: the published client against a real server, in all that a person can answer with it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ag_ui.core import AgentCapabilities

from interlock.core.chat.transcript import ModelReply
from tests.fakes.model_server import Fault
from tests.journeys.chat_client import calls, scripted_replies
from tests.journeys.shell import wait_until
from tests.node_packages import CLIENTS
from tests.protocols.ag_ui_scenario import AgUiClient, cancel_interrupts, resolve_interrupts, unknown_fields

pytestmark = pytest.mark.skipif(not CLIENTS.is_installed(), reason=CLIENTS.missing)


# R16, R54
def test_run_ends_at_the_interrupt_and_the_approved_call_runs_once_in_the_next(client: AgUiClient) -> None:
    asked = client.ask()
    assert asked.kinds == [
        *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
        *("STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"),
    ]
    [interrupt] = asked.interrupts
    assert interrupt["toolCallId"] == asked.events_of_kind("TOOL_CALL_START")[0]["toolCallId"]
    assert client.count_titled("Fix") == 0
    told = client.run(answers={interrupt["id"]: {"status": "resolved", "payload": {"approved": True}}})
    assert told.kinds == [
        *("RUN_STARTED", "TOOL_CALL_RESULT"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"),
    ]
    assert (told.outcome, told.interrupts, client.count_titled("Fix")) == ("success", [], 1)
    assert told.events_of_kind("TOOL_CALL_RESULT")[0]["toolCallId"] == interrupt["toolCallId"]
    assert client.approval(interrupt)["decision"]["by"] == "bob"


def test_interrupt_says_all_that_a_page_needs_to_show_it(client: AgUiClient) -> None:
    asked = client.ask()
    [interrupt], [call] = asked.interrupts, asked.events_of_kind("TOOL_CALL_ARGS")
    approval, about = client.approval(interrupt), interrupt["metadata"]
    assert (interrupt["reason"], interrupt["message"]) == ("tool_call", approval["sentence"])
    assert interrupt["expiresAt"] == approval["expires_at"]
    assert (about["args"], about["argsSha256"]) == (approval["args"], approval["args_sha256"])
    assert json.loads(call["delta"]) == {"title": f"Fix {client.thread}"}
    assert (about["risk"], about["findings"], about["needed"]) == (approval["risk"], [], approval["needed"])
    assert about["link"].endswith(f"/a/{approval['id']}")
    answer = interrupt["responseSchema"]
    assert (answer["required"], answer["additionalProperties"]) == (["approved"], False)
    assert answer["properties"]["editedArgs"]["properties"] == approval["schema"]["properties"]
    assert asked.state["interlock"]["approvals"] == [approval["id"]]


def test_snapshot_puts_the_messages_in_order(client: AgUiClient) -> None:
    asked = client.ask()
    [snapshot] = asked.events_of_kind("MESSAGES_SNAPSHOT")
    assert [message["role"] for message in asked.messages] == ["user", "assistant"]
    assert asked.messages == snapshot["messages"]
    assert asked.messages[1]["content"] == asked.text
    assert asked.messages[1]["toolCalls"][0]["id"] == asked.interrupts[0]["toolCallId"]
    told = client.answer({"approved": True}, asked)
    assert [message["role"] for message in told.messages] == ["user", "assistant", "tool", "assistant"]
    again = client.ask("Also")
    assert [message["role"] for message in again.messages] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant"),
    ]
    assert again.messages == client.run_new_client().messages


def test_edited_call_runs_with_the_persons_arguments(client: AgUiClient) -> None:
    asked = client.ask()
    told = client.answer({"approved": True, "editedArgs": {"title": f"Better {client.thread}"}}, asked)
    assert (client.count_titled("Fix"), client.count_titled("Better"), told.outcome) == (0, 1, "success")
    assert told.results[0]["changed"] == ["title"]
    assert client.approval(asked.interrupts[0])["editors"] == ["bob"]


@pytest.mark.parametrize("args", [{}, {"title": 7}, {"title": "x", "colour": "red"}, {"tool": "other", "args": {}}])
def test_edit_that_does_not_fit_the_tool_is_refused_and_can_be_made_again(client: AgUiClient, args: Any) -> None:
    asked = client.ask()
    refused = client.answer({"approved": True, "editedArgs": args}, asked)
    assert refused.refusal() == (422, "invalid_decision")
    client.assert_untouched(asked)
    assert refused.interrupts == asked.interrupts  # the client still has them
    client.answer({"approved": True, "editedArgs": {"title": f"Better {client.thread}"}}, asked)
    assert (client.count_titled("Fix"), client.count_titled("Better")) == (0, 1)


def test_rejected_call_does_not_run_and_the_model_hears_why(client: AgUiClient) -> None:
    told = client.answer({"approved": False, "reason": "Not today."}, client.ask())
    assert (told.outcome, client.count_titled("Fix")) == ("success", 0)
    assert (told.results[0]["status"], told.results[0]["reason"]) == ("rejected", "Not today.")


def test_call_can_be_answered_in_place_of_a_run(client: AgUiClient) -> None:
    told = client.answer({"approved": False, "response": "We have that one already."}, client.ask())
    assert told.results == ["We have that one already."]
    assert client.count_titled("Fix") == 0


def test_cancelled_call_is_rejected(client: AgUiClient) -> None:
    asked = client.ask()
    told = client.run(resume=cancel_interrupts(asked))
    assert (told.outcome, told.results[0]["status"], client.count_titled("Fix")) == ("success", "rejected", 0)
    assert client.approval(asked.interrupts[0])["decision"]["by"] == "bob"


def test_question_with_choices_takes_one_of_them(client: AgUiClient) -> None:
    asked = client.run(say="ask me which colour to use")
    [interrupt] = asked.interrupts
    assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Which colour to use?")
    assert interrupt["responseSchema"] == {"type": "string", "enum": ["red", "green", "blue"]}
    for wrong in ("pink", True, {"approved": True}, None, "", 0, {}, []):
        assert client.answer(wrong, asked).refusal() == (422, "invalid_decision")
    told = client.answer("green", asked)
    assert (told.outcome, told.results) == ("success", ["green"])


def test_open_question_takes_a_text_and_nothing_else(client: AgUiClient) -> None:
    asked = client.run(say="ask me what to call it")
    for wrong in (None, "", 0, {}, [], True, {"answer": "Ann"}):
        assert client.answer(wrong, asked).refusal() == (422, "invalid_decision")
    told = client.answer("Ann", asked)
    assert told.results == ["Ann"]


def test_question_by_schema_takes_what_fits_it_even_if_it_is_nothing_much(client: AgUiClient) -> None:
    schema = {"type": "integer", "minimum": 0}
    client.set_model(scripted_replies(calls(("request_human_input", {"question": "How many?", "schema": schema}))))
    asked = client.run(say="count", path="/ag-ui/openai")
    assert asked.interrupts[0]["responseSchema"] == schema
    for wrong in (None, "", {}, [], False, "0", -1, 0.5):
        assert client.answer(wrong, asked).refusal() == (422, "invalid_decision")
    assert client.answer(0, asked).results == [0]


def test_cancelled_question_is_withdrawn(client: AgUiClient) -> None:
    asked = client.run(say="ask me what to call it")
    told = client.run(resume=cancel_interrupts(asked))
    assert (told.outcome, told.results[0]["status"]) == ("success", "cancelled")


def test_expired_call_does_not_run_and_the_thread_goes_on(client: AgUiClient) -> None:
    asked = client.ask("Quick", "objective")
    client.wait_for(asked.interrupts[0], "expired")
    assert "expired" in client.answer({"approved": True}, asked).client_error()  # the client itself holds it back
    told = client.run(resume=cancel_interrupts(asked))
    assert (told.outcome, told.results[0]["status"], client.count_titled("Quick")) == ("success", "expired", 0)


def test_approval_that_comes_too_late_runs_nothing(client: AgUiClient) -> None:
    asked = client.ask("Quick", "objective")
    client.wait_for(asked.interrupts[0], "expired")
    told = client.run_new_client(resume=resolve_interrupts({"approved": True}, asked))
    assert (told.outcome, told.results[0]["status"], client.count_titled("Quick")) == ("success", "expired", 0)


def test_call_that_somebody_else_approved_stays_approved(client: AgUiClient) -> None:
    asked = client.ask()
    client.server.ada.decide(client.approval(asked.interrupts[0]), "approve")
    told = client.answer({"approved": False}, asked)
    assert (told.outcome, told.results[0]["title"]) == ("success", f"Fix {client.thread}")
    assert client.count_titled("Fix") == 1
    assert client.approval(asked.interrupts[0])["decision"]["by"] == "ada"


def test_call_that_somebody_else_rejected_stays_rejected(client: AgUiClient) -> None:
    asked = client.ask()
    client.server.ada.decide(client.approval(asked.interrupts[0]), "reject", reason="Not ours.")
    told = client.answer({"approved": True}, asked)
    assert (told.results[0]["status"], told.results[0]["reason"], client.count_titled("Fix")) == (
        "rejected",
        "Not ours.",
        0,
    )


def test_two_calls_are_two_interrupts_each_with_its_answer(client: AgUiClient) -> None:
    asked = client.ask_twice()
    first, second = asked.interrupts
    assert [first["toolCallId"], second["toolCallId"]] == [
        each["toolCallId"] for each in asked.events_of_kind("TOOL_CALL_START")
    ]
    answers = {first["id"]: {"approved": True}, second["id"]: {"approved": False}}
    told = client.run(answers={name: {"status": "resolved", "payload": each} for name, each in answers.items()})
    assert (told.outcome, len(told.results)) == ("success", 2)
    assert (client.count_titled("Fix"), client.count_titled("Also")) == (1, 0)


def test_interrupt_decided_elsewhere_is_reported_with_the_other(client: AgUiClient) -> None:
    asked = client.ask_twice()
    client.server.ada.decide(client.approval(asked.interrupts[0]), "approve")
    client.wait_for(asked.interrupts[0], "succeeded")
    told = client.answer({"approved": False}, asked)
    assert [each["toolCallId"] for each in told.events_of_kind("TOOL_CALL_RESULT")] == [
        each["toolCallId"] for each in asked.interrupts
    ]
    assert (client.count_titled("Fix"), client.count_titled("Also")) == (1, 0)


def test_next_call_is_the_next_interrupt(client: AgUiClient) -> None:
    wanted = [calls(("linear_create_issue", {"title": f"{word} {client.thread}"})) for word in ("Fix", "Also")]
    client.set_model(scripted_replies(*wanted))
    asked = client.run(say="both", path="/ag-ui/openai")
    again = client.answer({"approved": True}, asked)
    assert (again.outcome, client.count_titled("Fix"), client.count_titled("Also")) == ("interrupt", 1, 0)
    assert again.interrupts[0]["id"] != asked.interrupts[0]["id"]
    told = client.answer({"approved": True}, again)
    assert (told.outcome, client.count_titled("Fix"), client.count_titled("Also")) == ("success", 1, 1)


def test_call_that_others_have_to_approve_can_be_waited_for_or_withdrawn(client: AgUiClient) -> None:
    asked = client.ask("Theirs", "objective")
    [interrupt] = asked.interrupts
    assert interrupt["metadata"]["mayDecide"] == []
    assert client.answer({"approved": True}, asked).refusal() == (403, "forbidden")
    client.assert_untouched(asked)
    told = client.run(resume=cancel_interrupts(asked))
    assert (told.outcome, told.results[0]["status"], client.count_titled("Theirs")) == ("success", "cancelled", 0)


def test_first_of_two_approvals_is_a_vote_and_the_run_waits_on(client: AgUiClient) -> None:
    asked = client.ask("Pair", "objective")
    again = client.answer({"approved": True}, asked)
    assert (again.outcome, again.interrupts[0]["id"]) == ("interrupt", asked.interrupts[0]["id"])
    assert client.count_titled("Pair") == 0
    client.server.ada.decide(client.approval(asked.interrupts[0]), "approve")
    told = client.answer({"approved": True}, again)
    assert (told.outcome, client.count_titled("Pair")) == ("success", 1)


def test_answer_counts_only_for_the_arguments_that_the_interrupt_showed(client: AgUiClient) -> None:
    asked = client.ask("Pair", "objective")
    args = {"title": f"Pair other {client.thread}"}
    client.server.ada.decide(client.approval(asked.interrupts[0]), "edit", args=args)
    again = client.answer({"approved": True}, asked)
    [changed] = again.interrupts
    assert (again.outcome, changed["metadata"]["args"]) == ("interrupt", args)
    assert changed["id"] != asked.interrupts[0]["id"]
    assert client.count_titled("Pair") == client.count_titled("Pair other") == 0
    told = client.answer({"approved": True}, again)
    assert (told.outcome, client.count_titled("Pair"), client.count_titled("Pair other")) == ("success", 0, 1)


def test_call_that_was_edited_elsewhere_can_be_cancelled_as_it_is(client: AgUiClient) -> None:
    asked = client.ask("Pair", "objective")
    args = {"title": f"Pair other {client.thread}"}
    client.server.ada.decide(client.approval(asked.interrupts[0]), "edit", args=args)
    told = client.run(resume=cancel_interrupts(asked))
    assert (told.outcome, told.results[0]["status"], client.count_titled("Pair other")) == ("success", "rejected", 0)


def test_findings_have_to_be_acknowledged(client: AgUiClient) -> None:
    asked = client.ask("Fi\u202ex")
    [interrupt] = asked.interrupts
    alarms = [each["id"] for each in interrupt["metadata"]["findings"] if each["level"] == "alarm"]
    assert client.answer({"approved": True}, asked).refusal() == (422, "findings_not_acknowledged")
    client.assert_untouched(asked)
    client.answer({"approved": True, "acknowledged": alarms}, asked)
    assert client.count_titled("Fi\u202ex") == 1


def test_call_of_a_sub_agent_is_an_interrupt_of_the_call_that_began_it(client: AgUiClient) -> None:
    asked = client.run(say=f'let the scripted_loose create an issue titled "Fix {client.thread}"')
    [interrupt], [begun] = asked.interrupts, asked.events_of_kind("TOOL_CALL_START")
    assert (begun["toolCallName"], interrupt["toolCallId"]) == ("agent_scripted_loose", begun["toolCallId"])
    assert interrupt["metadata"]["agentPath"] == ["scripted", "scripted_loose"]
    told = client.answer({"approved": True}, asked)
    assert (told.outcome, client.count_titled("Fix")) == ("success", 1)
    assert [each["toolCallId"] for each in told.events_of_kind("TOOL_CALL_RESULT")] == [begun["toolCallId"]]


def test_reader_who_comes_back_gets_the_messages_and_what_is_open(client: AgUiClient) -> None:
    asked = client.ask()
    again = client.run_new_client()
    assert again.kinds == [
        *("RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"),
        *("STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"),
    ]
    assert (again.interrupts, again.messages) == (asked.interrupts, asked.messages)
    client.answer({"approved": True}, asked)
    over = client.run_new_client()
    assert (over.outcome, over.interrupts, len(over.messages)) == ("success", [], 4)


def test_reader_who_was_cut_off_in_the_middle_gets_the_rest(client: AgUiClient) -> None:
    words = "One word after the other, and each of them takes a while to come."
    client.set_model(scripted_replies(calls(text=words)))
    client.server.models.pause = 0.05
    with client.stream(say="speak", path="/ag-ui/openai") as frames:
        assert any("TEXT_MESSAGE_CONTENT" in frame for frame in frames)  # and leaves
    told = client.run_new_client(path="/ag-ui/openai")
    assert (told.kinds[:3], told.outcome) == (["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"], "success")
    assert [(each["role"], each["content"]) for each in told.messages] == [("user", "speak"), ("assistant", words)]


def test_same_answer_from_two_pages_at_once_runs_once(client: AgUiClient) -> None:
    asked = client.ask()

    def answer(_: int) -> str:
        with client.stream(resume=resolve_interrupts({"approved": True}, asked)) as frames:
            return list(frames)[-1]

    with ThreadPoolExecutor(4) as pool:
        last = list(pool.map(answer, range(4)))
    assert ['"outcome":{"type":"success"}' in each for each in last] == [True] * 4
    assert client.count_titled("Fix") == 1


def test_rejection_that_is_taken_back_is_an_interrupt_again(client: AgUiClient) -> None:
    asked = client.ask("Undo", "objective")
    [interrupt] = asked.interrupts
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.answer, {"approved": False}, asked)
        client.wait_for(interrupt, "rejected")
        client.server.bob.post(f"/api/approvals/{interrupt['metadata']['approvalId']}/undo", {})
        again = running.result(timeout=60)
    assert (again.outcome, [each["id"] for each in again.interrupts]) == ("interrupt", [interrupt["id"]])
    told = client.answer({"approved": True}, again)
    assert (told.outcome, client.count_titled("Undo")) == ("success", 1)


def test_thread_in_which_nothing_was_said_is_empty(client: AgUiClient) -> None:
    told = client.run()
    assert (told.outcome, told.messages) == ("success", [])


def test_retried_message_is_one_message(client: AgUiClient) -> None:
    say = f'create an issue titled "Fix {client.thread}"'
    asked = client.run(say=say, id="m1")
    again = client.run_new_client(say=say, id="m1")
    assert again.interrupts == asked.interrupts
    client.answer({"approved": True}, asked)
    over = client.run_new_client(say=say, id="m1")
    assert (over.outcome, len(over.events_of_kind("TOOL_CALL_START")), client.count_titled("Fix")) == ("success", 1, 1)
    assert client.run_new_client(say="something else", id="m1").refusal() == (409, "idempotency_mismatch")


def test_conversation_goes_on_and_reads_need_nobody(client: AgUiClient) -> None:
    assert client.run(say="list pages").outcome == "success"
    told = client.run(say="list posts")
    assert (told.outcome, len(told.events_of_kind("TOOL_CALL_RESULT"))) == ("success", 1)
    roles = [message["role"] for message in client.run_new_client().messages]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2


def test_long_thread_does_not_grow_beyond_what_a_client_can_post(client: AgUiClient) -> None:
    client.set_model(lambda _: ModelReply("Noted."))
    for number in range(12):
        told = client.run(say=f"number {number} {'x' * 95_000}", path="/ag-ui/openai")
        assert told.outcome == "success"
    assert len(json.dumps(told.sent)) < 700_000
    assert [each["role"] for each in told.messages[-2:]] == ["user", "assistant"]
    assert told.messages[-2]["content"].startswith("number 11 ")


def test_new_message_beside_the_answers_is_said_after_them(client: AgUiClient) -> None:
    asked = client.ask()
    told = client.run(resume=cancel_interrupts(asked), say="list pages")
    assert (told.outcome, client.count_titled("Fix")) == ("success", 0)
    texts = [message["content"] for message in client.run_new_client().messages if message["role"] == "user"]
    assert texts[-1] == "list pages"


def test_state_of_the_application_comes_back_as_it_was(client: AgUiClient) -> None:
    asked = client.run(state={"page": 3}, say=f'create an issue titled "Fix {client.thread}"')
    assert asked.state["page"] == 3
    assert asked.state["interlock"]["status"] == "waiting"


def test_stopped_thread_ends_its_run_as_cancelled(client: AgUiClient) -> None:
    asked = client.ask()
    client.server.ada.stop(asked.state["interlock"]["thread"])
    told = client.answer({"approved": True}, asked)
    assert (told.outcome, told.results[0]["status"], client.count_titled("Fix")) == ("cancelled", "cancelled", 0)


def test_model_that_fails_ends_the_run_with_an_error(client: AgUiClient) -> None:
    client.set_model(scripted_replies())
    client.server.models.faults.append(Fault("401"))
    told = client.run(say="hello", path="/ag-ui/openai")
    [error] = told.events_of_kind("RUN_ERROR")
    assert (told.kinds[-1], error["code"]) == ("RUN_ERROR", "error")
    assert error["message"]


def test_words_that_came_to_nothing_are_taken_back(client: AgUiClient) -> None:
    client.set_model(scripted_replies(calls(text="Hello to you all, and to everybody else.")))
    client.server.models.pause = 0.05
    client.server.models.faults.append(Fault("cut"))
    told = client.run(say="hello", path="/ag-ui/openai")
    assert (told.outcome, [message["role"] for message in told.messages]) == ("success", ["user", "assistant"])
    assert told.messages[-1]["content"] == "Hello to you all, and to everybody else."


def test_capabilities_are_declared_in_the_protocols_own_shape(client: AgUiClient) -> None:
    told = client.server.bob.get("/ag-ui/scripted")
    assert unknown_fields(AgentCapabilities.model_validate(told)) == []
    human = {"supported": True, "approvals": True, "interrupts": True, "approveWithEdits": True}
    assert (told["humanInTheLoop"], told["tools"]["clientProvided"]) == (human, False)
    assert told["identity"]["name"] == "scripted"
    assert client.server.bob.get("/ag-ui")["identity"]["name"] == "assistant"


def test_agent_that_nobody_knows_is_not_found(client: AgUiClient) -> None:
    assert client.run(say="hello", path="/ag-ui/nobody").refusal() == (404, "not_found")
    assert client.server.bob.client.get("/ag-ui/nobody").status_code == 404


def test_same_name_with_another_agent_is_another_thread(client: AgUiClient) -> None:
    asked = client.ask()
    other = client.run("other", path="/ag-ui/scripted_loose")
    assert (other.outcome, other.messages) == ("success", [])
    wait_until(lambda: client.approval(asked.interrupts[0])["status"] == "pending", "it still waits")
