"""A real example of every body, by the name of its model; of those without one, by method and path."""

from __future__ import annotations

from collections.abc import Mapping

_SHA256 = "d2bb3a09ba4d8ad2d4c3b8b9d3f8c9a0a2c0c4a0a7c0d8a9a3e5b1d7c6f4e2a1"
_ID = "0192f0c1-2b3d-7c4e-9f60-718293a4b5c6"
_THREAD = "thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8"
_POLICY = {"version": 1, "rules": [{"name": "reads are free", "effect": "read", "then": "allow"}]}

BODIES: Mapping[str, object] = {
    "Proposed": {
        "tool": "fund_transfer",
        "args": {"amount": 100, "recipient": "ann@example.com"},
        "run_id": "run-2027-03-01",
        "call_id": "call-1",
        "effect": "write",
        "initiated_by": "rita",
    },
    "Start": {"lease_seconds": 60},
    "Renew": {"fence": 1, "lease_seconds": 60},
    "Finish": {"fence": 1, "ok": True, "result": {"transfer": "T-1009"}},
    "Cancel": {"reason": "The user changed their mind."},
    "Abandon": {"fence": 1},
    "TakeUp": {"agent": "billing", "runner": "worker-1", "lease_seconds": 60},
    "Held": {"runner": "worker-1", "lease_seconds": 60},
    "RunEnded": {"runner": "worker-1"},
    "NewPause": {"run_id": "run-2027-03-01", "agent": "billing", "state": "eyJtZXNzYWdlcyI6W119"},
    "ClaimPauses": {"agent": "billing", "runner": "worker-1", "lease_seconds": 60, "wait": 20},
    "KeepPause": {"run_id": "run-2027-03-01", "fence": 1803891600001, "lease_seconds": 60},
    "LeavePause": {"run_id": "run-2027-03-01", "fence": 1803891600001, "failed": True},
    "EndPause": {"run_id": "run-2027-03-01", "fence": 1803891600001},
    "Said": {"kind": "approve", "args_sha256": _SHA256, "comment": "As agreed on the phone."},
    "Bulk": {
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
    "NewFreeze": {"scope": "tool", "name": "wire_*", "reason": "The bank asked us to stop."},
    "Nothing": {},
    "Delegate": {"users": ["eve"]},
    "Comment": {"text": "I have asked finance."},
    "Ask": {"question": "Which invoice is this for?"},
    "Resolve": {"ok": True, "note": "The bank shows the transfer.", "result": {"transfer": "T-1009"}},
    "NewQuestion": {
        "question": "Which account should it come from?",
        "choices": ["checking", "savings"],
        "run_id": "run-2027-03-01",
        "call_id": "question-1",
    },
    "NewReply": {"number": 1, "text": "For invoice 2027-113."},
    "ThreadsWanted": {"limit": 10, "offset": 0, "status": "interrupted", "metadata": {"graph_id": "interlock"}},
    "Resumption": {"command": {"resume": [{"type": "accept", "args": None}]}},
    "StateUpdate": {"values": None, "as_node": "__end__"},
    "Requested": {
        "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
        "actionType": "fund_transfer",
        "payload": {"amount": 100, "recipient": "ann@example.com"},
        "metadata": {"initiatedBy": "billing", "priority": "high", "expiresAt": "2027-03-01T18:00:00Z"},
    },
    "Submitted": {
        "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
        "decision": "modified",
        "modifiedPayload": {"amount": 50, "recipient": "ann@example.com"},
        "comment": "Half of it now.",
    },
    "NewFunctionCall": {
        "run_id": "billing-4fK2",
        "call_id": "call-9QxZ",
        "spec": {
            "fn": "pay_invoice",
            "kwargs": {"invoice": "2027-113", "amount": 100},
            "reject_options": [{"name": "later", "title": "Not this month"}],
        },
    },
    "NewHumanContact": {
        "run_id": "billing-4fK2",
        "call_id": "call-7LmN",
        "spec": {"msg": "Which account should it come from?"},
    },
    "CallAnswer": {"approved": False, "reject_option_name": "later"},
    "ContactAnswer": {"response": "The savings account."},
    "Escalation": {"escalation_msg": "The invoice is due today."},
    "NewMessage": {"message": "Publish the post hello-world.", "thread_id": _THREAD},
    "AiSdkPost": {
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
    "YesOrNo": {"approvalId": _ID, "approved": True, "reason": "As agreed on the phone."},
    "SignIn": {"name": "ada", "password": "correct horse battery staple"},
    "UseLink": {"token": "the-part-behind-the-#", "name": "ada", "password": "correct horse battery staple"},
    "Token": {"token": "the-part-behind-the-#"},
    "GivenLink": {"token": "the-part-behind-?t="},
    "GivenCode": {"token": "the-part-behind-?t=", "ticket": "what-asking-for-the-code-gave", "code": "12345678"},
    "NewUser": {"name": "eve", "role": "reviewer", "teams": ["finance"], "email": "eve@example.com"},
    "ChangedUser": {"role": "reviewer", "teams": ["finance", "leads"], "email": "eve@example.com"},
    "Away": {"until": "2027-03-15T08:00:00Z", "users": ["bob"], "teams": []},
    "NewLink": {"expires_in": "1h"},
    "NewPassword": {"old": "correct horse battery staple", "new": "a longer one, that nobody guesses"},
    "NewOwnKey": {"name": "my script", "role": "viewer", "expires_in": "30d"},
    "Binding": {"link": "the-part-behind-link="},
    "NewKey": {"name": "billing", "role": "agent", "agents": ["billing"], "requester": "none"},
    "Rotation": {"overlap": "24h"},
    "AgentBody": {"tools": ["read_file", "delete_file"], "tool_approvals": {"delete_file": True}},
    "NewGrant": {
        "tool": "send_mail",
        "agent": "billing",
        "expires_in": "8h",
        "max_uses": 20,
        "reason": "Today's letters.",
    },
    "NewPin": {"tool": "get_weather", "agent": "billing", "effect": "read"},
    "NewPins": {"agent": "billing"},
}

ROUTES: Mapping[str, Mapping[str, object]] = {
    "PUT /api/policy": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/check": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/rehearse": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/explain": {
        "application/json": {"tool": "fund_transfer", "args": {"amount": 100, "recipient": "ann@example.com"}}
    },
}
