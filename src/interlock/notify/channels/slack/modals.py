"""The forms that a button opens in Slack, and the decision that comes back from one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from interlock.core.call import QUESTION_TOOL
from interlock.core.canonical import canonical, canonical_args, parse_json
from interlock.core.card import Finding, visible
from interlock.core.decision import MAX_COMMENT, Acknowledgement, Approve, Decision, Edit, Reject, Respond
from interlock.core.errors import Error, InvalidDecision, InvalidRequest
from interlock.core.notify.message import ApprovalView
from interlock.notify import message_text as words
from interlock.notify.channels.slack.blocks import escape_and_cut, fits_in_note, label_object, note_block, text_block
from interlock.notify.channels.slack.form_fields import (
    MAX_OPTION,
    MISSING,
    VALUE,
    FormInput,
    apply_inputs,
    cut_names,
    make_input,
    make_inputs,
    option_text,
    read_inputs,
)

Json = dict[str, Any]
MAX_FINDINGS = 40
MAX_CHECKBOXES = 10  # boxes that Slack takes in one block
CHECKBOX_BLOCK = "look"  # begins the block of boxes
MAX_ERROR = 300  # characters of a complaint below a field


class InvalidForm(Exception):
    """What is wrong, by block."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors


@dataclass(frozen=True)
class DecisionForm:
    """What is asked for one kind of decision; `findings` have a box each, which may be left empty if `is_optional`."""

    kind: str
    title: str
    submit: str
    inputs: Sequence[FormInput]
    intro: Sequence[Json] = ()
    findings: Sequence[Finding] = ()
    is_optional: bool = False

    @property
    def ids(self) -> list[str]:
        return [f"{self.kind}{number}" for number in range(len(self.inputs))]

    @property
    def first(self) -> str:
        return self.ids[0] if self.inputs else f"{CHECKBOX_BLOCK}0"

    def view(self, metadata: str) -> Json:
        fields = [each.block(block_id) for each, block_id in zip(self.inputs, self.ids, strict=True)]
        return {
            "type": "modal",
            "callback_id": self.kind,
            "title": label_object(self.title),
            "submit": label_object(self.submit),
            "close": label_object("Cancel"),
            "private_metadata": metadata,
            "blocks": [*self.intro, *fields, *_checkbox_blocks(self.findings, is_optional=self.is_optional)],
        }


def make_form(kind: str, topic: ApprovalView) -> DecisionForm | None:
    """None if there is nothing that could be done with a form."""
    match kind:
        case "approve":
            return _approve_form(topic)
        case "edit":
            return _edit_form(topic)
        case "respond":
            return _respond_form(topic)
        case "reject":
            reason = FormInput("Reason", "text", required=False, hint="The agent is told.")
            return DecisionForm("reject", "Reject the call", "Reject", [reason], [text_block(topic.card.sentence)])
        case _:
            return None


def parse_decision(form: DecisionForm, topic: ApprovalView, seen: str, values: Mapping[str, Any]) -> Decision:
    """What the form says. Raises Wrong."""
    read, wrong = read_inputs(form.inputs, values, form.ids)
    if wrong:
        raise InvalidForm(wrong)
    looked = Acknowledgement(seen, _acknowledged(form.findings, values))
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
                raise InvalidForm({form.first: f"At most {MAX_COMMENT} characters are kept; these are {len(reason)}."})
            return Reject(reason, looked)


def field_errors(form: DecisionForm, error: Error) -> dict[str, str]:
    """What the server says against it, at the fields that it is about."""
    problems = error.problems if isinstance(error, InvalidDecision) else ()
    found: dict[str, str] = {}
    for problem in problems:
        block_id = _find_block(form, problem.pointer)
        if block_id:
            found[block_id] = _error_text(f"{found.get(block_id, '')} {problem.message}".strip())
    return found or {form.first: _error_text(error.message)}


def call_arguments(topic: ApprovalView) -> dict[str, object]:
    return cast(dict[str, object], parse_json(topic.args or b"{}"))


def alarm_findings(topic: ApprovalView) -> list[Finding]:
    return [finding for finding in topic.card.findings if finding.id in topic.approval.alarms]


def _approve_form(topic: ApprovalView) -> DecisionForm | None:
    findings = alarm_findings(topic)
    if not 0 < len(findings) <= MAX_FINDINGS or not _fit_in_notes(findings):
        return None
    intro = [
        text_block(topic.card.sentence),
        note_block("Some arguments may deceive. Look at each before you approve."),
    ]
    return DecisionForm("approve", "Look twice", "Approve", [], intro, findings)


def _edit_form(topic: ApprovalView) -> DecisionForm | None:
    inputs, left = make_inputs(call_arguments(topic), topic.schema, topic.secret, in_order=topic.declared)
    findings = alarm_findings(topic)
    if not inputs or len(findings) > MAX_FINDINGS or not _fit_in_notes(findings):
        return None
    intro = [text_block(topic.card.sentence)]
    intro += (
        [note_block(f"These stay as they are, and can be changed on the page: {', '.join(cut_names(left))}.")]
        if left
        else []
    )
    return DecisionForm("edit", "Edit the call", "Change and approve", inputs, intro, findings, is_optional=True)


def _respond_form(topic: ApprovalView) -> DecisionForm:
    intro = [text_block(topic.card.sentence)]
    if topic.approval.subject.tool != QUESTION_TOOL:
        message = FormInput("Message", "text", required=True, hint="The agent is told this, and the call is not made.")
        return DecisionForm("respond", "Answer", "Answer", [message], intro)
    asked = call_arguments(topic)
    choices, schema = asked.get("choices"), asked.get("schema")
    if choices is not None:
        schema = {"enum": choices}
    if not isinstance(schema, Mapping):
        return DecisionForm("respond", "Answer", "Answer", [FormInput("", "text", required=True)], intro)
    if _is_record(schema):
        inputs, _ = make_inputs({}, schema)
    else:
        inputs = [make_input("", schema, is_required=True)]
    intro += _choice_notes(choices)
    return DecisionForm("respond", "Answer", "Answer", inputs, intro)


def _choice_notes(choices: object) -> list[Json]:
    """Choices that are too long for a list, by their numbers."""
    if not isinstance(choices, list) or all(len(option_text(each)) <= MAX_OPTION for each in choices):
        return []
    return [
        note_block(f"{number}. {words.shorten(option_text(each), 500)}") for number, each in enumerate(choices[:40], 1)
    ]


def _is_record(schema: Mapping[str, object]) -> bool:
    properties = schema.get("properties")
    return schema.get("type") == "object" and isinstance(properties, Mapping) and bool(properties)


def _edit(form: DecisionForm, topic: ApprovalView, looked: Acknowledgement, read: Sequence[object]) -> Decision:
    args = call_arguments(topic)
    changed = apply_inputs(args, form.inputs, read)
    try:
        data = canonical_args(changed)
    except InvalidRequest as error:
        raise InvalidForm({form.first: _error_text(error.message)}) from None
    if data == canonical(args):
        raise InvalidForm({form.first: "Nothing was changed. Change something, or close this and approve the call."})
    return Edit(data, looked)


def _respond(form: DecisionForm, topic: ApprovalView, looked: Acknowledgement, read: Sequence[object]) -> Decision:
    asked = call_arguments(topic) if topic.approval.subject.tool == QUESTION_TOOL else {}
    schema = asked.get("schema")
    if isinstance(schema, Mapping) and _is_record(schema):
        return Respond(answer=apply_inputs({}, form.inputs, read), seen=looked)
    if schema is not None or asked.get("choices") is not None:
        return Respond(answer=None if read[0] is MISSING else read[0], seen=looked)
    return Respond(message=str(read[0]), seen=looked)


def _checkbox_blocks(findings: Sequence[Finding], *, is_optional: bool) -> list[Json]:
    """Each finding in full, and a box for it."""
    blocks: list[Json] = []
    for start in range(0, len(findings), MAX_CHECKBOXES):
        group = findings[start : start + MAX_CHECKBOXES]
        blocks += [note_block(_finding_text(number, each)) for number, each in enumerate(group, start + 1)]
        options = [
            {
                "text": label_object(escape_and_cut(f"{number}. {words.shorten(_where(each), 50)}", 75)),
                "value": _finding_key(each),
            }
            for number, each in enumerate(group, start + 1)
        ]
        blocks.append(
            {
                "type": "input",
                "block_id": f"{CHECKBOX_BLOCK}{start // MAX_CHECKBOXES}",
                "optional": is_optional,
                "label": label_object("I have looked at"),
                "element": {"type": "checkboxes", "action_id": VALUE, "options": options},
            }
        )
    return blocks


def _finding_text(number: int, finding: Finding) -> str:
    return f"{number}. {_where(finding)}: {finding.message}"


def _fit_in_notes(findings: Sequence[Finding]) -> bool:
    return all(fits_in_note(_finding_text(number, each)) for number, each in enumerate(findings, 1))


def _acknowledged(findings: Sequence[Finding], values: Mapping[str, Any]) -> tuple[str, ...]:
    boxes = [
        values.get(f"{CHECKBOX_BLOCK}{number}", {}).get(VALUE, {}) for number in range(MAX_FINDINGS // MAX_CHECKBOXES)
    ]
    marked = {option.get("value") for box in boxes for option in box.get("selected_options") or ()}
    return tuple(finding.id for finding in findings if _finding_key(finding) in marked)


def _finding_key(finding: Finding) -> str:
    """Ids may be longer than what Slack keeps."""
    return sha256(finding.id.encode()).hexdigest()[:32]


def _where(finding: Finding) -> str:
    return visible(finding.pointer.removeprefix("/")) or "the call"


def _find_block(form: DecisionForm, pointer: str) -> str:
    name = pointer.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
    return next((b for b, each in zip(form.ids, form.inputs, strict=True) if each.name == name and pointer), "")


def _error_text(text: str) -> str:
    return words.shorten(visible(text), MAX_ERROR)
