"""Slack modals: the forms that a button opens, and the decision that a submitted form makes.

It is long because a modal and the fields of its form are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from html import unescape
from typing import Any, Final, Literal, cast

from interlock.core.call import QUESTION_TOOL
from interlock.core.canonical import canonical, canonical_args, parse_json
from interlock.core.card import Finding, escape_invisible
from interlock.core.decision import MAX_COMMENT, Acknowledgement, Approve, Decision, Edit, Reject, Respond
from interlock.core.errors import Error, InvalidDecision, InvalidRequest
from interlock.core.notify.delivery import ApprovalView
from interlock.notify import message_text
from interlock.notify.channels.slack.blocks import (
    escape,
    escape_and_cut,
    fits_in_note,
    label_object,
    note_block,
    text_block,
)

Json = dict[str, Any]
MAX_FINDINGS = 40
MAX_CHECKBOXES = 10  # checkboxes that Slack allows in one block
CHECKBOX_BLOCK = "look"  # prefix of the ids of checkbox blocks
MAX_ERROR = 300  # characters of an error at a field


class InvalidForm(Exception):
    """Errors of a form, by block."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors


@dataclass(frozen=True, kw_only=True)
class DecisionForm:
    """Form for one kind of decision; `findings` have a checkbox each, which may be left empty if `is_optional`."""

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
    def first_input_id(self) -> str:
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


def make_form(kind: str, approval_view: ApprovalView) -> DecisionForm | None:
    """Make a form; None if a form cannot be used."""
    match kind:
        case "approve":
            return _approve_form(approval_view)
        case "edit":
            return _edit_form(approval_view)
        case "respond":
            return _respond_form(approval_view)
        case "reject":
            reason = FormInput("Reason", "text", required=False, hint="Sent to the agent.")
            return DecisionForm(
                kind="reject",
                title="Reject the call",
                submit="Reject",
                inputs=[reason],
                intro=[text_block(approval_view.card.sentence)],
            )
        case _:
            return None


def parse_decision(
    form: DecisionForm, approval_view: ApprovalView, seen_digest: str, values: Mapping[str, Any]
) -> Decision:
    """Parse the decision of a form. Raises InvalidForm."""
    parsed, errors = read_inputs(form.inputs, values, form.ids)
    if errors:
        raise InvalidForm(errors)
    acknowledgement = Acknowledgement(seen_digest, _acknowledged(form.findings, values))
    match form.kind:
        case "approve":
            return Approve(acknowledgement)
        case "edit":
            return _edit(form, approval_view, acknowledgement, parsed)
        case "respond":
            return _respond(form, approval_view, acknowledgement, parsed)
        case _:
            reason = parsed[0] if isinstance(parsed[0], str) else ""
            if len(reason) > MAX_COMMENT:
                raise InvalidForm(
                    {form.first_input_id: f"At most {MAX_COMMENT} characters are kept; these are {len(reason)}."}
                )
            return Reject(reason, acknowledgement)


def field_errors(form: DecisionForm, error: Error) -> dict[str, str]:
    """Return the server's error by the fields that it concerns."""
    problems = error.problems if isinstance(error, InvalidDecision) else ()
    found: dict[str, str] = {}
    for problem in problems:
        block_id = _find_block(form, problem.pointer)
        if block_id:
            found[block_id] = _error_text(f"{found.get(block_id, '')} {problem.message}".strip())
    return found or {form.first_input_id: _error_text(error.message)}


def call_arguments(approval_view: ApprovalView) -> dict[str, object]:
    return cast(dict[str, object], parse_json(approval_view.args or b"{}"))


def alarm_findings(approval_view: ApprovalView) -> list[Finding]:
    return [finding for finding in approval_view.card.findings if finding.id in approval_view.approval.findings.alarms]


def _approve_form(approval_view: ApprovalView) -> DecisionForm | None:
    findings = alarm_findings(approval_view)
    if not 0 < len(findings) <= MAX_FINDINGS or not _fit_in_notes(findings):
        return None
    intro = [
        text_block(approval_view.card.sentence),
        note_block("Check each marked argument before you approve."),
    ]
    return DecisionForm(kind="approve", title="Look twice", submit="Approve", inputs=[], intro=intro, findings=findings)


def _edit_form(approval_view: ApprovalView) -> DecisionForm | None:
    inputs, left = make_inputs(
        call_arguments(approval_view),
        approval_view.schema,
        approval_view.secret_pointers,
        in_order=approval_view.declared,
    )
    findings = alarm_findings(approval_view)
    if not inputs or len(findings) > MAX_FINDINGS or not _fit_in_notes(findings):
        return None
    intro = [text_block(approval_view.card.sentence)]
    intro += (
        [note_block(f"These stay unchanged; they can be edited in the web app: {', '.join(cut_names(left))}.")]
        if left
        else []
    )
    return DecisionForm(
        kind="edit",
        title="Edit the call",
        submit="Approve with changes",
        inputs=inputs,
        intro=intro,
        findings=findings,
        is_optional=True,
    )


def _respond_form(approval_view: ApprovalView) -> DecisionForm:
    intro = [text_block(approval_view.card.sentence)]
    if approval_view.approval.subject.tool != QUESTION_TOOL:
        message = FormInput("Message", "text", required=True, hint="Sent to the agent; the call does not run.")
        return DecisionForm(kind="respond", title="Answer", submit="Answer", inputs=[message], intro=intro)
    arguments = call_arguments(approval_view)
    choices, schema = arguments.get("choices"), arguments.get("schema")
    if choices is not None:
        schema = {"enum": choices}
    if not isinstance(schema, Mapping):
        return DecisionForm(
            kind="respond", title="Answer", submit="Answer", inputs=[FormInput("", "text", required=True)], intro=intro
        )
    if _is_record(schema):
        inputs, _ = make_inputs({}, schema)
    else:
        inputs = [make_input("", schema, is_required=True)]
    intro += _choice_notes(choices)
    return DecisionForm(kind="respond", title="Answer", submit="Answer", inputs=inputs, intro=intro)


def _choice_notes(choices: object) -> list[Json]:
    """Show choices that are too long for a list, by number."""
    if not isinstance(choices, list) or all(len(option_text(each)) <= MAX_OPTION for each in choices):
        return []
    return [
        note_block(f"{number}. {message_text.shorten(option_text(each), 500)}")
        for number, each in enumerate(choices[:40], 1)
    ]


def _is_record(schema: Mapping[str, object]) -> bool:
    properties = schema.get("properties")
    return schema.get("type") == "object" and isinstance(properties, Mapping) and bool(properties)


def _edit(
    form: DecisionForm, approval_view: ApprovalView, acknowledgement: Acknowledgement, read: Sequence[object]
) -> Decision:
    args = call_arguments(approval_view)
    changed = apply_inputs(args, form.inputs, read)
    try:
        data = canonical_args(changed)
    except InvalidRequest as error:
        raise InvalidForm({form.first_input_id: _error_text(error.message)}) from None
    if data == canonical(args):
        raise InvalidForm(
            {form.first_input_id: "There are no changes. Change something, or close this and approve the call."}
        )
    return Edit(data, acknowledgement)


def _respond(
    form: DecisionForm, approval_view: ApprovalView, acknowledgement: Acknowledgement, read: Sequence[object]
) -> Decision:
    arguments = call_arguments(approval_view) if approval_view.approval.subject.tool == QUESTION_TOOL else {}
    schema = arguments.get("schema")
    if isinstance(schema, Mapping) and _is_record(schema):
        return Respond(answer=apply_inputs({}, form.inputs, read), seen=acknowledgement)
    if schema is not None or arguments.get("choices") is not None:
        return Respond(answer=None if read[0] is MISSING else read[0], seen=acknowledgement)
    return Respond(message=str(read[0]), seen=acknowledgement)


def _checkbox_blocks(findings: Sequence[Finding], *, is_optional: bool) -> list[Json]:
    """Show each finding in full, with a checkbox."""
    blocks: list[Json] = []
    for start in range(0, len(findings), MAX_CHECKBOXES):
        group = findings[start : start + MAX_CHECKBOXES]
        blocks += [note_block(_finding_text(number, each)) for number, each in enumerate(group, start + 1)]
        options = [
            {
                "text": label_object(escape_and_cut(f"{number}. {message_text.shorten(_where(each), 50)}", 75)),
                "value": _finding_key(each),
            }
            for number, each in enumerate(group, start + 1)
        ]
        blocks.append(
            {
                "type": "input",
                "block_id": f"{CHECKBOX_BLOCK}{start // MAX_CHECKBOXES}",
                "optional": is_optional,
                "label": label_object("Checked"),
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
    """Return a short key: ids may be longer than Slack allows."""
    return sha256(finding.id.encode()).hexdigest()[:32]


def _where(finding: Finding) -> str:
    return escape_invisible(finding.pointer.removeprefix("/")) or "the call"


def _find_block(form: DecisionForm, pointer: str) -> str:
    name = pointer.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
    return next((b for b, each in zip(form.ids, form.inputs, strict=True) if each.name == name and pointer), "")


def _error_text(text: str) -> str:
    return message_text.shorten(escape_invisible(text), MAX_ERROR)


InputKind = Literal["text", "number", "choice", "json"]
Schema = Mapping[str, object]
MAX_INPUT = 3_000  # characters that Slack allows in a field
MAX_OPTIONS = 100
MAX_OPTION = 75  # characters of an option
MAX_INPUTS = 40
MAX_RADIO_OPTIONS = 10  # options shown as radio buttons
ONE_LINE = 80
MISSING: Final = object()  # no value, which is not the same as null
VALUE = "value"  # the action id of every field


class InvalidInput(Exception):
    """The input cannot be parsed."""


@dataclass(frozen=True)
class FormInput:
    """An input field; `name` is the argument, `current` its present value, or MISSING."""

    name: str
    kind: InputKind
    _: KW_ONLY
    required: bool
    current: object = MISSING
    options: Sequence[object] = ()
    nullable: bool = False
    hint: str = ""

    def block(self, block_id: str) -> Json:
        title = escape_and_cut(escape_invisible(self.name), 150) or "Answer"
        made: Json = {
            "type": "input",
            "block_id": block_id,
            "label": label_object(f"{title} (JSON)" if self.kind == "json" else title),
            "optional": not self.required or self.current == "",
            "element": self._element(),
        }
        return {**made, "hint": label_object(escape_and_cut(escape_invisible(self.hint), 300))} if self.hint else made

    def read(self, state: Mapping[str, Any]) -> object:
        """Return the value that was entered; MISSING omits the argument. Raises InvalidInput."""
        if self.kind == "choice":
            chosen = state.get("selected_option")
            return self._empty_value() if chosen is None else self._chosen(str(chosen.get("value", "")))
        typed = state.get("value")
        if not isinstance(typed, str) or not typed:
            return self._empty_value()
        before = self._initial_text()
        if typed in (before, unescape(before)):  # Slack may show &lt; as <
            return self.current
        return typed if self.kind == "text" else self._parsed(typed)

    def _element(self) -> Json:
        if self.kind == "choice":
            return self._choice()
        shown = self._initial_text()
        long = self.kind == "json" or len(shown) > ONE_LINE or "\n" in shown
        made: Json = {"type": "plain_text_input", "action_id": VALUE, "multiline": long}
        return {**made, "initial_value": shown} if shown else made

    def _choice(self) -> Json:
        options = [_option(number, value) for number, value in enumerate(self.options)]
        made: Json = {
            "type": "radio_buttons" if len(options) <= MAX_RADIO_OPTIONS else "static_select",
            "action_id": VALUE,
            "options": options,
        }
        at = _index(self.options, self.current)
        return made if at is None else {**made, "initial_option": options[at]}

    def _initial_text(self) -> str:
        if self.current is MISSING:
            return ""
        if self.kind == "text" and isinstance(self.current, str):
            return self.current
        return canonical(self.current).decode()

    def _empty_value(self) -> object:
        if self.current == "" or (self.kind == "text" and self.required):
            return ""
        return None if self.nullable else MISSING

    def _chosen(self, value: str) -> object:
        if not value.isascii() or not value.isdigit() or int(value) >= len(self.options):
            raise InvalidInput("This is not one of the choices.")
        return self.options[int(value)]

    def _parsed(self, typed: str) -> object:
        try:
            value = parse_json(typed.strip())
        except InvalidRequest:
            value = MISSING
        if self.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInput("This is not a number.")
        if value is MISSING:
            raise InvalidInput("This is not JSON. Put text in quotation marks.")
        return value


def make_inputs(
    args: Mapping[str, object], schema: Schema | None, secret: Sequence[str] = (), *, in_order: bool = False
) -> tuple[list[FormInput], list[str]]:
    """Return the inputs that can be changed here, and the names of the arguments that stay unchanged.

    Required ones come first, unless they are to be in the order of the arguments.
    """
    shapes = _properties(schema)
    wanted = (schema or {}).get("required")
    required = wanted if isinstance(wanted, list) else []
    found: list[FormInput] = []
    omitted: list[str] = []
    first = args if in_order else [name for name in (*shapes, *args) if name in required]
    for name in dict.fromkeys((*first, *shapes, *args)):
        current = args.get(name, MISSING)
        made = make_input(name, shapes.get(name), current, is_required=name in required)
        if _is_secret(name, current, secret) or not _can_be_shown(made) or len(found) >= MAX_INPUTS:
            omitted.append(name)
        else:
            found.append(made)
    return found, omitted


def make_input(name: str, shape: Schema | None, current: object = MISSING, *, is_required: bool) -> FormInput:
    """Make an input by the schema; without one, by the current value."""
    shape = shape or {}
    types = _types(shape, current)
    nullable = "null" in types and len(types) > 1
    hint = shape.get("description")
    options = _options(shape, types - {"null"})
    kind: InputKind = "choice" if options else _kind(types - {"null"})
    if (
        kind == "text"
        and current is not MISSING
        and not isinstance(current, str)
        and not (nullable and current is None)
    ):
        kind = "json"
    if kind == "text" and current is None:
        current = MISSING
    return FormInput(
        name,
        kind,
        required=is_required,
        current=current,
        options=options,
        nullable=nullable,
        hint=hint if isinstance(hint, str) else "",
    )


def apply_inputs(
    args: Mapping[str, object], inputs: Sequence[FormInput], values: Sequence[object]
) -> dict[str, object]:
    """Return the arguments with the entered values; those without a field are unchanged."""
    changed = dict(args)
    for each, value in zip(inputs, values, strict=True):
        if value is MISSING:
            changed.pop(each.name, None)
        else:
            changed[each.name] = value
    return changed


def _properties(schema: Schema | None) -> Mapping[str, Schema]:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: shape if isinstance(shape, Mapping) else {} for name, shape in properties.items()}


def _types(shape: Schema, current: object) -> frozenset[str]:
    match shape.get("type"):
        case str(one):
            return frozenset({one})
        case list() as many:
            return frozenset(map(str, many))
        case _:
            return _value_types(current) if not shape else frozenset()


def _value_types(current: object) -> frozenset[str]:
    match current:
        case str():
            return frozenset({"string"})
        case bool():
            return frozenset({"boolean"})
        case int() | float():
            return frozenset({"number"})
        case _:
            return frozenset()


def _kind(types: frozenset[str]) -> InputKind:
    if types == {"string"}:
        return "text"
    return "number" if types and types <= {"number", "integer"} else "json"


def _options(shape: Schema, types: frozenset[str]) -> Sequence[object]:
    """Return the values to choose from, if they are few enough."""
    values = shape.get("enum")
    if not isinstance(values, list):
        return (True, False) if types == {"boolean"} else ()
    return values if 0 < len(values) <= MAX_OPTIONS else ()


def _option(number: int, value: object) -> Json:
    """Make an option; one that is too long gets a number to identify it."""
    text = option_text(value)
    if not text or len(escape(text)) > MAX_OPTION:
        text = f"{number + 1}. {message_text.shorten(text, MAX_OPTION - 15)}"
    return {"text": label_object(escape_and_cut(text, MAX_OPTION)), "value": str(number)}


def option_text(value: object) -> str:
    return escape_invisible(value) if isinstance(value, str) else escape_invisible(canonical(value).decode())


def _index(options: Sequence[object], current: object) -> int | None:
    if current is MISSING:
        return None
    same = (number for number, value in enumerate(options) if canonical(value) == canonical(current))
    return next(same, None)


def _is_secret(name: str, current: object, secret: Sequence[str]) -> bool:
    """Return whether it is secret or contains a secret: nobody should type one into Slack."""
    pointer = f"/{name.replace('~', '~0').replace('/', '~1')}"
    marked = isinstance(current, Mapping) and set(current) == {"$secret"}
    return marked or any(each == pointer or each.startswith(f"{pointer}/") for each in secret)


def _can_be_shown(made: FormInput) -> bool:
    """Return whether a field returns the value unchanged."""
    if made.kind == "choice":
        return made.current is MISSING or _index(made.options, made.current) is not None
    shown = made._initial_text()
    return len(shown) <= MAX_INPUT and all(line.isprintable() for line in shown.split("\n")) and shown == shown.strip()


def read_inputs(
    inputs: Sequence[FormInput], values: Mapping[str, Any], ids: Sequence[str]
) -> tuple[list[object], dict[str, str]]:
    """Return the value of each field, and the errors by block."""
    read: list[object] = []
    wrong: dict[str, str] = {}
    for each, block_id in zip(inputs, ids, strict=True):
        try:
            read.append(each.read(values.get(block_id, {}).get(VALUE, {})))
        except InvalidInput as error:
            read.append(MISSING)
            wrong[block_id] = str(error)
    return read, wrong


def cut_names(names: Sequence[str], most: int = 10) -> Iterator[str]:
    yield from (message_text.shorten(escape_invisible(name), 100) for name in names[:most])
    if len(names) > most:
        yield f"{len(names) - most} more"
