"""The forms that a button opens in Slack, and the decision that comes back from one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from interlock.core.call import QUESTION
from interlock.core.canonical import canonical, canonical_args, parse
from interlock.core.card import Finding, visible
from interlock.core.decision import MAX_COMMENT, Approve, Decision, Edit, Reject, Respond, Seen
from interlock.core.errors import Error, InvalidDecision, InvalidRequest
from interlock.core.notify.message import Topic
from interlock.notify import message_text as words
from interlock.notify.channels.slack.blocks import is_noted, label, note, plain, sentence
from interlock.notify.channels.slack.form_fields import (
    MAX_OPTION,
    MISSING,
    VALUE,
    Input,
    edited,
    input_of,
    inputs_of,
    named,
    option_text,
    read_all,
)

Json = dict[str, Any]
MAX_FINDINGS = 40
GROUP = 10  # boxes that Slack takes in one block
LOOK = "look"  # begins the block of boxes
ERROR = 300  # characters of a complaint below a field


class Wrong(Exception):
    """What is wrong, by block."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors


@dataclass(frozen=True)
class Form:
    """What is asked for one kind of decision; `findings` have a box each, which may be left empty if `is_optional`."""

    kind: str
    title: str
    submit: str
    inputs: Sequence[Input]
    intro: Sequence[Json] = ()
    findings: Sequence[Finding] = ()
    is_optional: bool = False

    @property
    def ids(self) -> list[str]:
        return [f"{self.kind}{number}" for number in range(len(self.inputs))]

    @property
    def first(self) -> str:
        return self.ids[0] if self.inputs else f"{LOOK}0"

    def view(self, metadata: str) -> Json:
        fields = [each.block(block_id) for each, block_id in zip(self.inputs, self.ids, strict=True)]
        return {
            "type": "modal",
            "callback_id": self.kind,
            "title": label(self.title),
            "submit": label(self.submit),
            "close": label("Cancel"),
            "private_metadata": metadata,
            "blocks": [*self.intro, *fields, *_boxes(self.findings, is_optional=self.is_optional)],
        }


def form_of(kind: str, topic: Topic) -> Form | None:
    """None if there is nothing that could be done with a form."""
    match kind:
        case "approve":
            return _approve_form(topic)
        case "edit":
            return _edit_form(topic)
        case "respond":
            return _respond_form(topic)
        case "reject":
            reason = Input("Reason", "text", required=False, hint="The agent is told.")
            return Form("reject", "Reject the call", "Reject", [reason], [sentence(topic.card.sentence)])
        case _:
            return None


def decision_of(form: Form, topic: Topic, seen: str, values: Mapping[str, Any]) -> Decision:
    """What the form says. Raises Wrong."""
    read, wrong = read_all(form.inputs, values, form.ids)
    if wrong:
        raise Wrong(wrong)
    looked = Seen(seen, _acknowledged(form.findings, values))
    match form.kind:
        case "approve":
            return Approve(looked)
        case "edit":
            return _edit(form, topic, looked, read)
        case "respond":
            return _respond(form, topic, looked, read)
        case _:
            reason = read[0] if isinstance(read[0], str) else ""
            if len(reason) > MAX_COMMENT:
                raise Wrong({form.first: f"At most {MAX_COMMENT} characters are kept; these are {len(reason)}."})
            return Reject(reason, looked)


def wrong_of(form: Form, error: Error) -> dict[str, str]:
    """What the server says against it, at the fields that it is about."""
    problems = error.problems if isinstance(error, InvalidDecision) else ()
    found: dict[str, str] = {}
    for problem in problems:
        block_id = _block_of(form, problem.pointer)
        if block_id:
            found[block_id] = _said(f"{found.get(block_id, '')} {problem.message}".strip())
    return found or {form.first: _said(error.message)}


def args_of(topic: Topic) -> dict[str, object]:
    return cast(dict[str, object], parse(topic.args or b"{}"))


def alarms_of(topic: Topic) -> list[Finding]:
    return [finding for finding in topic.card.findings if finding.id in topic.approval.alarms]


def _approve_form(topic: Topic) -> Form | None:
    findings = alarms_of(topic)
    if not 0 < len(findings) <= MAX_FINDINGS or not _are_shown(findings):
        return None
    intro = [sentence(topic.card.sentence), note("Some arguments may deceive. Look at each before you approve.")]
    return Form("approve", "Look twice", "Approve", [], intro, findings)


def _edit_form(topic: Topic) -> Form | None:
    inputs, left = inputs_of(args_of(topic), topic.schema, topic.secret, in_order=topic.declared)
    findings = alarms_of(topic)
    if not inputs or len(findings) > MAX_FINDINGS or not _are_shown(findings):
        return None
    intro = [sentence(topic.card.sentence)]
    intro += (
        [note(f"These stay as they are, and can be changed on the page: {', '.join(named(left))}.")] if left else []
    )
    return Form("edit", "Edit the call", "Change and approve", inputs, intro, findings, is_optional=True)


def _respond_form(topic: Topic) -> Form:
    intro = [sentence(topic.card.sentence)]
    if topic.approval.subject.tool != QUESTION:
        message = Input("Message", "text", required=True, hint="The agent is told this, and the call is not made.")
        return Form("respond", "Answer", "Answer", [message], intro)
    asked = args_of(topic)
    choices, schema = asked.get("choices"), asked.get("schema")
    if choices is not None:
        schema = {"enum": choices}
    if not isinstance(schema, Mapping):
        return Form("respond", "Answer", "Answer", [Input("", "text", required=True)], intro)
    if _is_record(schema):
        inputs, _ = inputs_of({}, schema)
    else:
        inputs = [input_of("", schema, is_required=True)]
    intro += _spelled_out(choices)
    return Form("respond", "Answer", "Answer", inputs, intro)


def _spelled_out(choices: object) -> list[Json]:
    """Choices that are too long for a list, by their numbers."""
    if not isinstance(choices, list) or all(len(option_text(each)) <= MAX_OPTION for each in choices):
        return []
    return [note(f"{number}. {words.short(option_text(each), 500)}") for number, each in enumerate(choices[:40], 1)]


def _is_record(schema: Mapping[str, object]) -> bool:
    properties = schema.get("properties")
    return schema.get("type") == "object" and isinstance(properties, Mapping) and bool(properties)


def _edit(form: Form, topic: Topic, looked: Seen, read: Sequence[object]) -> Decision:
    args = args_of(topic)
    changed = edited(args, form.inputs, read)
    try:
        data = canonical_args(changed)
    except InvalidRequest as error:
        raise Wrong({form.first: _said(error.message)}) from None
    if data == canonical(args):
        raise Wrong({form.first: "Nothing was changed. Change something, or close this and approve the call."})
    return Edit(data, looked)


def _respond(form: Form, topic: Topic, looked: Seen, read: Sequence[object]) -> Decision:
    asked = args_of(topic) if topic.approval.subject.tool == QUESTION else {}
    schema = asked.get("schema")
    if isinstance(schema, Mapping) and _is_record(schema):
        return Respond(answer=edited({}, form.inputs, read), seen=looked)
    if schema is not None or asked.get("choices") is not None:
        return Respond(answer=None if read[0] is MISSING else read[0], seen=looked)
    return Respond(message=str(read[0]), seen=looked)


def _boxes(findings: Sequence[Finding], *, is_optional: bool) -> list[Json]:
    """Each finding in full, and a box for it."""
    blocks: list[Json] = []
    for start in range(0, len(findings), GROUP):
        group = findings[start : start + GROUP]
        blocks += [note(_told(number, each)) for number, each in enumerate(group, start + 1)]
        options = [
            {"text": label(plain(f"{number}. {words.short(_where(each), 50)}", 75)), "value": _mark(each)}
            for number, each in enumerate(group, start + 1)
        ]
        blocks.append(
            {
                "type": "input",
                "block_id": f"{LOOK}{start // GROUP}",
                "optional": is_optional,
                "label": label("I have looked at"),
                "element": {"type": "checkboxes", "action_id": VALUE, "options": options},
            }
        )
    return blocks


def _told(number: int, finding: Finding) -> str:
    return f"{number}. {_where(finding)}: {finding.message}"


def _are_shown(findings: Sequence[Finding]) -> bool:
    return all(is_noted(_told(number, each)) for number, each in enumerate(findings, 1))


def _acknowledged(findings: Sequence[Finding], values: Mapping[str, Any]) -> tuple[str, ...]:
    boxes = [values.get(f"{LOOK}{number}", {}).get(VALUE, {}) for number in range(MAX_FINDINGS // GROUP)]
    marked = {option.get("value") for box in boxes for option in box.get("selected_options") or ()}
    return tuple(finding.id for finding in findings if _mark(finding) in marked)


def _mark(finding: Finding) -> str:
    """Ids may be longer than what Slack keeps."""
    return sha256(finding.id.encode()).hexdigest()[:32]


def _where(finding: Finding) -> str:
    return visible(finding.pointer.removeprefix("/")) or "the call"


def _block_of(form: Form, pointer: str) -> str:
    name = pointer.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
    return next((b for b, each in zip(form.ids, form.inputs, strict=True) if each.name == name and pointer), "")


def _said(text: str) -> str:
    return words.short(visible(text), ERROR)
