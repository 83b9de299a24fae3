"""A real example of every body, by the name of its model; of those without one, by method and path."""

from __future__ import annotations

from collections.abc import Mapping

_SHA256 = "d2bb3a09ba4d8ad2d4c3b8b9d3f8c9a0a2c0c4a0a7c0d8a9a3e5b1d7c6f4e2a1"
_ID = "0192f0c1-2b3d-7c4e-9f60-718293a4b5c6"
_THREAD = "thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8"
_POLICY = {"version": 1, "rules": [{"name": "reads are free", "effect": "read", "then": "allow"}]}

BODY_EXAMPLES: Mapping[str, object] = {
    "ProposalBody": {
        "tool": "fund_transfer",
        "args": {"amount": 100, "recipient": "ann@example.com"},
        "run_id": "run-2027-03-01",
        "call_id": "call-1",
        "effect": "write",
        "initiated_by": "rita",
    },
    "StartCallBody": {"lease_seconds": 60},
    "RenewCallBody": {"fence": 1, "lease_seconds": 60},
    "FinishCallBody": {"fence": 1, "ok": True, "result": {"transfer": "T-1009"}},
    "CancelCallBody": {"reason": "The user changed their mind."},
    "AbandonCallBody": {"fence": 1},
    "AcquireRunBody": {"agent": "billing", "runner": "worker-1", "lease_seconds": 60},
    "RenewRunBody": {"runner": "worker-1", "lease_seconds": 60},
    "RunnerBody": {"runner": "worker-1"},
    "PauseBody": {"run_id": "run-2027-03-01", "agent": "billing", "state": "eyJtZXNzYWdlcyI6W119"},
    "ClaimPausesBody": {"agent": "billing", "runner": "worker-1", "lease_seconds": 60, "wait": 20},
    "RenewPauseBody": {"run_id": "run-2027-03-01", "fence": 1803891600001, "lease_seconds": 60},
    "ReleasePauseBody": {"run_id": "run-2027-03-01", "fence": 1803891600001, "failed": True},
    "CompletePauseBody": {"run_id": "run-2027-03-01", "fence": 1803891600001},
    "DecisionBody": {"kind": "approve", "args_sha256": _SHA256, "comment": "As agreed on the phone."},
    "BulkDecisionsBody": {
        "decisions": [
            {"id": _ID, "kind": "approve", "args_sha256": _SHA256},
            {
                "id": "0192f0c1-2b3d-7c4e-9f60-718293a4b5c7",
                "kind": "reject",
                "args_sha256": _SHA256,
                "reason": "Not this month.",
            },
        ]
    },
    "FreezeBody": {"scope": "tool", "name": "wire_*", "reason": "The bank asked us to stop."},
    "EmptyBody": {},
    "DelegateBody": {"users": ["eve"]},
    "CommentBody": {"text": "I have asked finance."},
    "AskAgentBody": {"question": "Which invoice is this for?"},
    "ResolveUnknownBody": {"ok": True, "note": "The bank shows the transfer.", "result": {"transfer": "T-1009"}},
    "AskPeopleBody": {
        "question": "Which account should it come from?",
        "choices": ["checking", "savings"],
        "run_id": "run-2027-03-01",
        "call_id": "question-1",
    },
    "ReplyBody": {"number": 1, "text": "For invoice 2027-113."},
    "InboxSearchBody": {"limit": 10, "offset": 0, "status": "interrupted", "metadata": {"graph_id": "interlock"}},
    "InboxResumeBody": {"command": {"resume": [{"type": "accept", "args": None}]}},
    "InboxStateUpdateBody": {"values": None, "as_node": "__end__"},
    "ExternalRequestBody": {
        "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
        "actionType": "fund_transfer",
        "payload": {"amount": 100, "recipient": "ann@example.com"},
        "metadata": {"initiatedBy": "billing", "priority": "high", "expiresAt": "2027-03-01T18:00:00Z"},
    },
    "SubmitAnswerBody": {
        "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
        "decision": "modified",
        "modifiedPayload": {"amount": 50, "recipient": "ann@example.com"},
        "comment": "Half of it now.",
    },
    "FunctionCallBody": {
        "run_id": "billing-4fK2",
        "call_id": "call-9QxZ",
        "spec": {
            "fn": "pay_invoice",
            "kwargs": {"invoice": "2027-113", "amount": 100},
            "reject_options": [{"name": "later", "title": "Not this month"}],
        },
    },
    "HumanContactBody": {
        "run_id": "billing-4fK2",
        "call_id": "call-7LmN",
        "spec": {"msg": "Which account should it come from?"},
    },
    "FunctionCallAnswerBody": {"approved": False, "reject_option_name": "later"},
    "HumanContactAnswerBody": {"response": "The savings account."},
    "EscalationBody": {"escalation_msg": "The invoice is due today."},
    "ChatMessageBody": {"message": "Publish the post hello-world.", "thread_id": _THREAD},
    "AiSdkChatBody": {
        "id": "chat-1",
        "messages": [
            {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Publish the post hello-world."}]}
        ],
        "trigger": "submit-message",
    },
    "RunAgentInput": {
        "threadId": "greetings",
        "runId": "run-1",
        "messages": [{"id": "message-1", "role": "user", "content": "Publish the post hello-world."}],
    },
    "ChatDecisionBody": {"approvalId": _ID, "approved": True, "reason": "As agreed on the phone."},
    "SignInBody": {"name": "ada", "password": "correct horse battery staple"},
    "UseSignInLinkBody": {"token": "the-part-behind-the-#", "name": "ada", "password": "correct horse battery staple"},
    "SignInTokenBody": {"token": "the-part-behind-the-#"},
    "MessageLinkBody": {"token": "the-part-behind-?t="},
    "MessageCodeBody": {"token": "the-part-behind-?t=", "ticket": "what-asking-for-the-code-gave", "code": "12345678"},
    "NewUserBody": {"name": "eve", "role": "reviewer", "teams": ["finance"], "email": "eve@example.com"},
    "UserBody": {"role": "reviewer", "teams": ["finance", "leads"], "email": "eve@example.com"},
    "AwayBody": {"until": "2027-03-15T08:00:00Z", "users": ["bob"], "teams": []},
    "SignInLinkBody": {"expires_in": "1h"},
    "ChangePasswordBody": {"old": "correct horse battery staple", "new": "a longer one, that nobody guesses"},
    "OwnKeyBody": {"name": "my script", "role": "viewer", "expires_in": "30d"},
    "IdentityLinkBody": {"link": "the-part-behind-link="},
    "KeyBody": {"name": "billing", "role": "agent", "agents": ["billing"], "requester": "none"},
    "RotateKeyBody": {"overlap": "24h"},
    "AgentBody": {"tools": ["read_file", "delete_file"], "tool_approvals": {"delete_file": True}},
    "GrantBody": {
        "tool": "send_mail",
        "agent": "billing",
        "expires_in": "8h",
        "max_uses": 20,
        "reason": "Today's letters.",
    },
    "PinBody": {"tool": "get_weather", "agent": "billing", "effect": "read"},
    "PinAllBody": {"agent": "billing"},
}

ROUTE_EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "PUT /api/policy": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/check": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/rehearse": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/explain": {
        "application/json": {"tool": "fund_transfer", "args": {"amount": 100, "recipient": "ann@example.com"}}
    },
}
