"""Builders of test values: each returns one valid value, and every field can be overridden."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from interlock.core.approval.approval import Approval, PreparedEdit
from interlock.core.approval.execute import start
from interlock.core.approval.propose import Proposal, request_approval
from interlock.core.call import ToolCall, ToolSpec, propose, redact
from interlock.core.canonical import canonical, digest
from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, Respond, Reviewer
from interlock.core.ledger.event import Change, Moment, Payload, Stored
from interlock.core.policy.policy import Ask, EscalationStep, People, Stage

NOW = 1_000_000
KEY = b"k" * 32
LEASE = 60_000
ARGS = {"amount": 5, "to": "ann"}
OTHER_ARGS = {"amount": 6, "to": "ann"}

ALICE = Reviewer("alice", "reviewer", teams=frozenset({"finance"}), via="web")
BOB = Reviewer("bob", "reviewer", teams=frozenset({"finance"}), via="slack")
CAROL = Reviewer("carol", "reviewer", teams=frozenset({"legal"}), via="web")
DAVE = Reviewer("dave", "reviewer", teams=frozenset(), via="mail")
ADMIN = Reviewer("root", "admin")
VIEWER = Reviewer("vic", "viewer", teams=frozenset({"finance"}))
AGENT = Reviewer("robot", "agent", teams=frozenset({"finance"}))
FINANCE = People(teams=frozenset({"finance"}))
LEGAL = People(teams=frozenset({"legal"}))
TWO_OF_FINANCE = Ask("two of finance", (Stage(FINANCE, 2),))

PAY = ToolSpec("pay", "write")


def at(now: int = NOW) -> Moment:
    return Moment(now)


def at_with_clock_behind(now: int = NOW) -> Moment:
    """The clock is behind the ledger's last entry."""
    return Moment(now, is_clock_behind=True)


def users(*names: str) -> People:
    return People(frozenset(names))


def call(args: object = ARGS, tool: str = "pay", **more: object) -> ToolCall:
    return propose(tool, args, "run", "call", **{"requester": "rita", "agent": "helper", **more})


def proposal(spec: ToolSpec = PAY, **more: object) -> Proposal:
    """Keyword arguments go to the call if it has such a field, else to the proposal."""
    proposal_fields = set(Proposal._fields)
    extra: dict[str, Any] = {name: more.pop(name) for name in list(more) if name in proposal_fields}
    tool_call = call(**more)
    redacted = redact(tool_call.args, spec, KEY)
    return Proposal("id", "nonce", tool_call, spec, redacted, "Pay?")._replace(**extra)


def pending_with_payload(terms: Ask = Ask(), spec: ToolSpec = PAY, **more: object) -> Stored:  # noqa: B008  frozen
    """A pending approval and its payload."""
    change = request_approval(proposal(spec, **more), terms, at())
    assert change.payload is not None
    return Stored(change.state, change.payload)


def pending(terms: Ask = Ask(), spec: ToolSpec = PAY, **more: object) -> Approval:  # noqa: B008  frozen
    return pending_with_payload(terms, spec, **more).approval


def approval_in_status(status: str, **more: Any) -> Approval:
    """An approval as it would lie in the database; `idempotent` chooses the tool."""
    spec = replace(PAY, idempotent=more.pop("idempotent", False))
    base = pending(more.pop("terms", Ask()), spec)
    times: dict[str, dict[str, Any]] = {
        "rejected": {"release_at": NOW + 8_000},
        "approved": {"start_by": NOW + 3_600_000},
        "running": {"start_by": NOW + 3_600_000, "fence": 1, "until": NOW + LEASE, "runner": "r1"},
    }
    return replace_fields(base, status=status, **{**times.get(status, {}), **more})


GROUPED_VALUES = ("deadlines", "findings", "timers", "lease", "discussion")


def replace_fields(approval: Approval, **changes: Any) -> Approval:
    """The approval with other values; a field of a grouped value is given by its own name."""
    for name, value in changes.items():
        group = next((each for each in GROUPED_VALUES if name in getattr(approval, each)._fields), "")
        changed = getattr(approval, group)._replace(**{name: value}) if group else value
        approval = replace(approval, **{group or name: changed})
    return approval


def store_row(approval: Approval, args: object = ARGS) -> Stored:
    return Stored(approval, Payload(args=canonical(args)))


def start_call(approval: Approval, now: int = NOW, *, args: object = ARGS, runner: str = "r1") -> Change[Approval]:
    return start(store_row(approval, args), runner, LEASE, "", at(now), runner_is_dead=False)


def acknowledge(approval: Approval, *acknowledged: str, **more: str) -> Acknowledgement:
    return Acknowledgement(approval.args_sha256, acknowledged, **more)


def approve(approval: Approval, *acknowledged: str, **more: str) -> Approve:
    return Approve(acknowledge(approval, *acknowledged, **more))


def reject(approval: Approval, **more: str) -> Reject:
    return Reject("", acknowledge(approval, **more))


def respond(approval: Approval, message: str = "Use the other account.") -> Respond:
    return Respond(message, None, acknowledge(approval))


def edit(approval: Approval, args: object = OTHER_ARGS, *acknowledged: str) -> Edit:
    return Edit(canonical(args), acknowledge(approval, *acknowledged))


def prepare_edit(approval: Approval, args: object = OTHER_ARGS, terms: Ask | None = None, *alarms: str) -> PreparedEdit:
    """The edit as the inbox prepares it before the transaction."""
    data = canonical(args)
    return PreparedEdit(
        replaces=approval.args_sha256,
        args=data,
        shown=None,
        args_sha256=digest(data),
        sentence="Pay more?",
        alarms=alarms,
        terms=terms or approval.terms,
    )


_names = st.sampled_from(["alice", "bob", "carol", "dave", "rita"])
_teams = st.sampled_from(["finance", "legal", "ops"])
people = st.builds(People, st.frozensets(_names, max_size=3), st.frozensets(_teams, max_size=2))
stages = st.builds(Stage, st.none() | people, st.integers(1, 3))
escalation_steps = st.builds(
    EscalationStep, st.integers(1, 9) | st.just(5), people, st.lists(st.just("pager"), max_size=1).map(tuple)
)
ask_verdicts = st.builds(
    Ask,
    st.sampled_from(["one", "two"]),
    st.lists(stages, min_size=1, max_size=3).map(tuple),
    exclude=st.frozensets(st.sampled_from(["requester", "editor"])),
    decisions=st.permutations(["approve", "edit", "respond", "reject"]).flatmap(
        lambda kinds: st.integers(0, 4).map(lambda n: tuple(kinds[:n]))
    ),
    priority=st.sampled_from(["low", "medium", "high"]),
    expires_in=st.integers(1, 10**9),
    on_expiry=st.sampled_from(["reject", "escalate", "approve"]),
    escalation_steps=st.lists(escalation_steps, max_size=2).map(
        lambda found: tuple(sorted(found, key=lambda escalation_step: escalation_step.after))
    ),
    remind=st.lists(st.integers(1, 99), max_size=2).map(tuple),
    undo_window=st.integers(0, 99),
    start_within=st.integers(0, 99),
)
any_text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 10**40, 10**40 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
