"""What another service is answered: JSON, and errors as everywhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping

from interlock.channels.channel import Reply
from interlock.core.approval import Decided
from interlock.core.card import visible
from interlock.core.errors import Error, StoreUnavailable
from interlock.core.message import Topic
from interlock.runtime.durations import rfc3339

# Where the database is and what it said is for those who run the server.
UNAVAILABLE = "The database cannot be used now; nothing was decided. Try again in a while, with the same id."


def json_reply(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value, separators=(",", ":")).encode())


def error_reply(error: Error) -> Reply:
    body = error.to_json()
    if isinstance(error, StoreUnavailable):
        body["message"] = UNAVAILABLE
    decision = body.get("decision")
    if isinstance(decision, dict):  # inside the program times are numbers; outside they are text
        body["decision"] = {**decision, "at": rfc3339(decision["at"])}
    return json_reply(body, error.status)


def standing_json(topic: Topic) -> dict[str, object]:
    """An approval in short: how it stands, and what was decided."""
    return {
        "id": topic.approval.id,
        "status": topic.status,
        "args_sha256": topic.approval.args_sha256,
        "decision": decision_json(topic.approval.decision),
    }


def decision_json(decided: Decided | None) -> Mapping[str, object] | None:
    if decided is None:
        return None
    said = {"reason": visible(decided.reason), "comment": visible(decided.comment)}
    return {
        "kind": decided.kind,
        "by": visible(decided.by),
        "at": rfc3339(decided.at),
        "via": visible(decided.via),
        **{name: text for name, text in said.items() if text},
    }
