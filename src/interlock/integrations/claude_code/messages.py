"""What Claude Code says to a hook, and what it is told. Pure, and core alone is imported: a hook's start counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.core.call import Args, ToolSpec
from interlock.core.canonical import canonical, digest
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Payload
from interlock.core.names import matches_pattern
from interlock.core.outcome import Answered, Finished, Outcome, Refused, refusal_message

BEFORE = ("PreToolUse", "PermissionRequest")
AFTER = ("PostToolUse", "PostToolUseFailure")
MAX_KEPT = 64 * 1024  # bytes of a result that are kept as they are
MAX_MODEL_TEXT = 8_000  # characters: of a longer answer the model is shown a part only
READ_PRESETS: Mapping[str, tuple[str, ...]] = {
    # What looks and changes nothing but the session itself. Not among them: WebFetch and WebSearch, which send what the
    # model writes to others, and Bash, which does anything. What a sub-agent calls comes to the hook as well.
    "claude-code": (
        *("Read", "Glob", "Grep", "LS", "LSP", "NotebookRead", "BashOutput", "TaskOutput", "ToolSearch"),
        *("TodoRead", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "CronList"),
        *("ListMcpResourcesTool", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Agent", "Task"),
    )
}


# What it says


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One message about one call. `id` is its tool_use_id; empty where there is none."""

    name: str
    session: str
    tool: str
    args: Args
    id: str = ""
    sub_agent: str = ""
    cwd: str = ""
    response: object = None
    error: str = ""
    interrupted: bool = False

    @property
    def alike(self) -> str:
        """The same for calls of one agent that want the same."""
        return self.like(self.args)

    def like(self, args: Args) -> str:
        return digest(canonical([self.sub_agent, self.tool, args]))


def parse_event(told: object) -> HookEvent:
    """Raises InvalidRequest for whatever is not a message that this hook answers."""
    if not isinstance(told, Mapping):
        raise InvalidRequest("What came in is not an event of Claude Code: it is no JSON object.")
    name = _text(told, "hook_event_name", needed=True)
    if name not in BEFORE + AFTER:
        raise InvalidRequest(
            f"This hook answers {', '.join(BEFORE + AFTER)}. Take it out of the hooks of {name[:50]!r}."
        )
    args, response = told.get("tool_input"), told.get("tool_response")
    if not isinstance(args, Mapping):
        raise InvalidRequest(f"The event {name} has no tool_input.")
    return HookEvent(
        name,
        _text(told, "session_id", needed=True),
        _text(told, "tool_name", needed=True),
        args,
        _text(told, "tool_use_id"),
        _text(told, "agent_type") if told.get("agent_id") else "",
        _text(told, "cwd"),
        response,
        _text(told, "error"),
        told.get("is_interrupt") is True or (isinstance(response, Mapping) and response.get("interrupted") is True),
    )


def _text(told: Mapping[str, object], name: str, *, needed: bool = False) -> str:
    value = told.get(name) or ""
    if not isinstance(value, str) or (needed and not value):
        raise InvalidRequest(f"The event has no {name}.")
    return value


# What is known of its tools


def parse_reads(text: str) -> tuple[str, ...]:
    """`Read,Glob,mcp__docs__*`, or the name of a ready list among them."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = tuple(dict.fromkeys(each for name in names for each in READ_PRESETS.get(name, (name,))))
    if any(not name.strip("*?") for name in found):
        raise InvalidRequest("That would count every tool as a read. Name those that only look.")
    return found


def make_tool_spec(event: HookEvent, reads: tuple[str, ...]) -> ToolSpec:
    """A tool of which nothing is said asks. Where it would happen is told by Claude Code, and not by the model."""
    is_read = any(matches_pattern(event.tool, name) for name in reads)
    effect, describe, schema = TOOL_HINTS.get(event.tool, ("", "", None))
    preview = (lambda _: f"In the folder {event.cwd}") if event.cwd else None
    return ToolSpec(event.tool, "read" if is_read else effect, schema, describe, preview)


def _object_schema(needed: str, **types: str) -> dict[str, object]:
    """Other names pass: a newer Claude Code may have more of them."""
    properties = {name: {"type": sort} for name, sort in types.items()}
    return {"type": "object", "properties": properties, "required": needed.split()}


EDIT_FIELDS = {"file_path": "string", "old_string": "string", "new_string": "string", "replace_all": "boolean"}
RUN_FIELDS = {"command": "string", "description": "string", "timeout": "number", "run_in_background": "boolean"}
ToolHint = tuple[str, str, dict[str, object] | None]
TOOL_HINTS: Mapping[str, ToolHint] = {  # people get a sentence and a form, and a bad edit goes back to them
    "Bash": ("", "Run {command}", _object_schema("command", **RUN_FIELDS)),
    "Write": ("write", "Write {file_path}", _object_schema("file_path content", file_path="string", content="string")),
    "Edit": ("write", "Change {file_path}", _object_schema("file_path old_string new_string", **EDIT_FIELDS)),
    "WebFetch": ("", "Fetch {url}", _object_schema("url", url="string", prompt="string")),
}


# What it is told


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """`decision` is allow, deny, ask, defer, or empty: then nothing is said. `args` are those that were approved."""

    decision: str
    reason: str = ""
    args: Args | None = None


def answer_json(event: str, answer: HookAnswer) -> dict[str, object]:
    """The answer in the words of the event."""
    if not answer.decision or event in AFTER:
        return {}
    if event == "PermissionRequest":
        return _permission_json(answer)
    told: dict[str, object] = {"hookEventName": "PreToolUse", "permissionDecision": answer.decision}
    told |= {"permissionDecisionReason": answer.reason} if answer.reason else {}
    told |= {"updatedInput": answer.args} if answer.args is not None else {}
    return {"hookSpecificOutput": told}


def _permission_json(answer: HookAnswer) -> dict[str, object]:
    """It knows yes and no; without either, Claude Code asks its own user, which is what `ask` means."""
    match answer.decision:
        case "allow":
            decision: dict[str, object] = {"behavior": "allow"}
            decision |= {"updatedInput": answer.args} if answer.args is not None else {}
        case "ask":
            return {}
        case _:
            decision = {"behavior": "deny", "message": answer.reason}
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def denial_reason(outcome: Outcome, tool: str) -> str:
    """What the model is told of a call that must not or need not run."""
    match outcome:
        case Answered(message):
            words = message if isinstance(message, str) else canonical(message).decode()
        case Refused():
            words = str(refusal_message(outcome, tool)["error"])
        case Finished("succeeded", result):
            words = f"{tool} ran before under this id and is not run again. Its result: {canonical(result).decode()}"
        case Finished("failed", _, error):
            words = f"{tool} ran before under this id, failed, and is not run again: {error}"
        case Finished():
            words = f"{tool} was started and nobody knows how it ended. Do not call it again: a person has to look."
        case _:
            words = f"{tool} was already started under this id, and runs at most once. Wait for what comes of it."
    return words if len(words) <= MAX_MODEL_TEXT else f"{words[:MAX_MODEL_TEXT]}…"


# How it ended


def event_payload(event: HookEvent) -> Payload:
    """What the record keeps: the error in words, or the result, described where it is long."""
    if event.name == "PostToolUseFailure":
        return Payload(error=_storable(event.error or "It failed.")[:2_000])
    try:
        kept = canonical(event.response)
    except (InvalidRequest, ValueError):
        kept = canonical(_storable(repr(event.response))[:2_000])
    if len(kept) > MAX_KEPT:
        kept = canonical(f"{kept[:2_000].decode('utf-8', 'ignore')}… ({len(kept):,} bytes)")
    return Payload(result=kept)


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
