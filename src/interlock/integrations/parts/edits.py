"""What a model is told when a person changed the arguments of its call: its history keeps those that it wrote."""

from __future__ import annotations

import json

from interlock.core.call import Args, ToolCall, ToolSpec
from interlock.core.canonical import canonical_args, digest
from interlock.core.outcome import Finished, Outcome
from interlock.sdk.agent import Ran

EDITED = "A reviewer changed the arguments before it ran"


def note(call: ToolCall, spec: ToolSpec, outcome: Ran | Outcome, ran: Args | None) -> str:
    """Empty where nothing was changed. `ran` are the arguments that were run just now, if they were."""
    match outcome:
        case Ran() if ran is not None and canonical_args(ran) != call.args:
            return f"{EDITED}." if spec.secret else f"{EDITED}: {json.dumps(ran, ensure_ascii=False)}"
        case Finished("succeeded", args_sha256=before) if before and not spec.secret and before != digest(call.args):
            return f"{EDITED}."
        case _:
            return ""
