"""The inbox, the service for people: list, show, decide, undo, bulk, delegate, resolve an unknown, and grants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import cast

from interlock.app.policy_in_force import PolicyInForce, SpecLookup, denied_now_error, no_registered_specs
from interlock.core import grant as grants
from interlock.core.approval import approval as approvals
from interlock.core.approval import discussion
from interlock.core.approval.approval import Approval, PreparedEdit
from interlock.core.approval.vote import Delegation, args_diff, schema_findings
from interlock.core.call import QUESTION_TOOL, Args, RedactedArgs, ToolSpec, redact, restore
from interlock.core.canonical import canonical, read_canonical
from interlock.core.card import Card, make_card, risk_level
from interlock.core.confusables import matches_pattern
from interlock.core.decision import Approve, Decision, Edit, Respond, Reviewer
from interlock.core.declared import call_findings, call_sentence, card_texts
from interlock.core.errors import (
    ALREADY_DECIDED_ERRORS,
    Conflict,
    Error,
    Expired,
    Forbidden,
    InvalidDecision,
    InvalidRequest,
    NotFound,
    Problem,
)
from interlock.core.grant import Grant, GrantState
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.erasure import Erasure, ErasureResult
from interlock.core.ledger.event import Change, Moment, Stored
from interlock.core.outcome import status_at
from interlock.core.policy.policy import Ask, Deny, People
from interlock.core.ports import ApprovalPage, ApprovalQuery, Clock, ConditionCompiler, Stats, Store, User, Validator
from interlock.core.rate_limit import AttemptLimiter
from interlock.runtime.offload import offload

ERASED_MESSAGE = "The content of this call was erased."
SPEC_LOOKBACK = 50  # calls of a tool to search for its definition
REVOCATION_LOOKBACK = 10_000  # entries of the ledger
MAX_REFUSALS = 60  # ledger entries per minute for one person's refused decisions
REFUSALS = (Conflict, Forbidden, InvalidDecision)  # errors of a decision that the person can do something about


@dataclass(frozen=True, slots=True)
class ApprovalDetails:
    """One approval as a person sees it; `status` is by the clock, the card from the stored bytes, `spec` as it was."""

    stored: Stored
    status: str
    card: Card
    timeline: Sequence[Entry]
    spec: ToolSpec


@dataclass(frozen=True, slots=True)
class GrantView:
    """A grant; `recent_calls` are the newest that it allowed, `revocation_entry` is None if it is too old to find."""

    grant: Grant
    state: GrantState
    recent_calls: Sequence[Stored]
    revocation_entry: Entry | None


@dataclass(frozen=True, slots=True)
class LatestDefinition:
    """A tool as `agent` called it at that time; `others` counts further definitions among the newest calls."""

    spec: ToolSpec
    agent: str
    at: int
    others: int


PreparedDecision = Callable[[Approval], PreparedEdit | Error | None]


class Inbox:
    """The inbox; `find_registered_spec` finds tools registered in this process, by workspace and name."""

    def __init__(
        self,
        store: Store,
        in_force: PolicyInForce,
        clock: Clock,
        compile_condition: ConditionCompiler,
        validate: Validator,
    ) -> None:
        self.in_force = in_force
        self.find_registered_spec: SpecLookup = no_registered_specs
        self._store = store
        self._clock = clock
        self._compile_condition = compile_condition
        self._validate = validate
        self._refusal_limiter = AttemptLimiter(MAX_REFUSALS)

    async def list(self, workspace: str, query: ApprovalQuery) -> ApprovalPage:
        return self.in_force.defer_page(await self._store.list(workspace, query), self._clock())

    async def stats(self, workspace: str) -> Stats:
        return await self._store.stats(workspace)

    async def show(self, workspace: str, approval_id: str) -> ApprovalDetails:
        stored = await self._store.get(workspace, approval_id)
        stored = stored._replace(approval=self.in_force.defer_approval(stored.approval, self._clock()))
        spec = await self._spec(stored.approval)
        timeline = await self._store.timeline(workspace, approval_id)
        status = status_at(stored.approval, self._clock())
        shown = self._prefer_registered_spec(stored.approval, spec)  # the same definition, with the order of its author
        return ApprovalDetails(stored, status, await self._card(stored, spec), timeline, shown)

    async def decide(self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer) -> Approval:
        if self._has_many_refusals(workspace, reviewer):
            expected = await self._expected_change(workspace, approval_id, decision, reviewer)
            if expected.error and expected.state.status == "pending":  # not an expiry, which has to be written
                raise expected.error
        try:
            return await self.in_force.retry_if_outdated(
                approval_id, partial(self._decide, workspace, approval_id, decision, reviewer)
            )
        except ALREADY_DECIDED_ERRORS as error:
            return await self.record_refusal(workspace, approval_id, decision, reviewer, error)
        except REFUSALS:  # recorded with the transaction
            self._count_refusal(workspace, reviewer)
            raise

    async def _decide(self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer) -> Approval:
        prepare = await self._prepare_decision(workspace, approval_id, decision)
        return await self._store.transition_by(workspace, approval_id, reviewer, partial(_decide, decision, prepare))

    async def check_decision(self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer) -> None:
        """Raise the error that `decide` would raise now; nothing is recorded."""
        if error := (await self._expected_change(workspace, approval_id, decision, reviewer)).error:
            raise error

    async def _expected_change(
        self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer
    ) -> Change[Approval]:
        return await self.in_force.retry_if_outdated(
            approval_id, partial(self._expect_change, workspace, approval_id, decision, reviewer)
        )

    async def _expect_change(
        self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer
    ) -> Change[Approval]:
        stored = await self._store.get(workspace, approval_id)
        prepare = await self._prepare_decision(workspace, approval_id, decision, stored)
        prepared = prepare(stored.approval)
        moment = Moment(self._clock(), is_clock_behind=False)
        approval = self.in_force.defer_approval(stored.approval, moment.now)
        return approvals.decide(approval, decision, reviewer, moment, prepared)

    @asynccontextmanager
    async def recording_refusals(
        self, workspace: str, approval_id: str, reviewer: Reviewer, attempted: Decision | None = None
    ) -> AsyncIterator[None]:
        """Record as refused what this block refuses: for checks before `decide`, which records its own refusals."""
        try:
            yield
        except (*REFUSALS, *ALREADY_DECIDED_ERRORS, InvalidRequest) as error:
            with suppress(NotFound):
                await self.record_refusal(workspace, approval_id, attempted, reviewer, error)
            raise

    async def record_refusal(
        self, workspace: str, approval_id: str, decision: Decision | None, reviewer: Reviewer, error: Error
    ) -> Approval:
        """Record a refused attempt and raise the error: for problems with how a decision was submitted."""
        kind, seen = ("", None) if decision is None else (decision.kind, decision.seen.args_sha256)
        return await self._record_refusal(workspace, approval_id, reviewer, error, kind, args_sha256=seen)

    async def _record_refusal(
        self, workspace: str, approval_id: str, reviewer: Reviewer, error: Error, kind: str, **seen: object
    ) -> Approval:
        if self._has_many_refusals(workspace, reviewer):
            raise error
        self._count_refusal(workspace, reviewer)
        return await self._store.transition(
            workspace,
            approval_id,
            lambda approval, _: approvals.record_refusal(approval, kind, reviewer, error, **seen),
        )

    def _has_many_refusals(self, workspace: str, reviewer: Reviewer) -> bool:
        """Whether further refusals are not recorded for now: one person must not fill the ledger."""
        return self._refusal_limiter.retry_after(f"{workspace}\n{reviewer.name}", self._clock()) > 0

    def _count_refusal(self, workspace: str, reviewer: Reviewer) -> None:
        self._refusal_limiter.record_attempt(f"{workspace}\n{reviewer.name}", self._clock())

    async def bulk(
        self, workspace: str, decisions: Sequence[tuple[str, Decision | Error]], reviewer: Reviewer
    ) -> Sequence[Approval | Error]:
        """Decide many: one result each; an error stops none of the others. They share transactions."""
        tries = [self._attempt(workspace, approval_id, each, reviewer) for approval_id, each in decisions]
        return await asyncio.gather(*tries)

    async def undo(self, workspace: str, approval_id: str, reviewer: Reviewer) -> Approval:
        try:
            return await self._store.transition_by(
                workspace, approval_id, reviewer, lambda approval, moment, who: approvals.undo(approval, who, moment)
            )
        except (Conflict, Expired) as error:
            return await self._record_refusal(workspace, approval_id, reviewer, error, "undo")

    async def delegate(self, workspace: str, approval_id: str, to: People, reviewer: Reviewer) -> Approval:
        return await self._store.transition_by(
            workspace,
            approval_id,
            reviewer,
            lambda approval, moment, who: approvals.delegate(approval, to, who, moment),
        )

    async def claim(self, workspace: str, approval_id: str, reviewer: Reviewer) -> Approval:
        return await self._store.transition_by(
            workspace, approval_id, reviewer, lambda approval, moment, who: discussion.claim(approval, who, moment)
        )

    async def release(self, workspace: str, approval_id: str, reviewer: Reviewer) -> Approval:
        return await self._store.transition(
            workspace, approval_id, lambda approval, moment: discussion.release(approval, reviewer, moment)
        )

    async def comment(self, workspace: str, approval_id: str, text: str, reviewer: Reviewer) -> Approval:
        return await self._store.transition(
            workspace, approval_id, lambda approval, _: discussion.comment(approval, text, reviewer)
        )

    async def ask(self, workspace: str, approval_id: str, text: str, reviewer: Reviewer) -> Approval:
        """Ask the agent a question; its number is `asked` of the returned approval."""
        return await self._store.transition(
            workspace, approval_id, lambda approval, moment: discussion.ask(approval, text, reviewer, moment)
        )

    async def resolve_unknown(
        self, workspace: str, approval_id: str, reviewer: Reviewer, *, ok: bool, note: str = "", result: object = None
    ) -> Approval:
        kept = None if result is None else canonical(result)
        return await self._store.transition_by(
            workspace,
            approval_id,
            reviewer,
            lambda approval, moment, who: approvals.resolve_unknown(approval, note, who, kept, moment, ok=ok),
        )

    async def grants(self, workspace: str) -> Sequence[Grant]:
        """The newest grants, in any state."""
        return await self._store.grants(workspace)

    async def active_grants(self, workspace: str) -> Sequence[Grant]:
        """The newest active grants."""
        return await self._store.usable_grants(workspace, self._clock())

    async def show_grant(self, workspace: str, grant_id: str, uses: int = 50) -> GrantView:
        grant = await self._store.grant(workspace, grant_id)
        used = await self._store.grant_uses(grant, uses) if grant.uses else ()
        revoked = None if grant.revoked_at is None else await self._revocation(grant)
        return GrantView(grant, grants.state_at(grant, self._clock()), used, revoked)

    async def definition(self, workspace: str, tool: str, agent: str = "*") -> LatestDefinition:
        """The definition that a new grant is tied to: of the newest call, if possible by such an agent."""
        seen = await self._store.newest_specs(workspace, tool, SPEC_LOOKBACK)
        if not seen:
            raise NotFound(
                f"No call of {tool!r} has been seen in the workspace {workspace!r}, and a grant is tied to the tool's "
                "definition. Check the name, or let the agent ask once."
            )
        theirs = [each for each in seen if matches_pattern(each[1], agent)] or seen
        sha256, caller, at = theirs[0]
        spec = await self._store.spec(sha256)
        if spec is None:
            raise NotFound(f"The definition of {tool!r} is missing from the database.")
        return LatestDefinition(spec, caller, at, len({each[0] for each in theirs}) - 1)

    async def grant(self, draft: Grant, maker: Reviewer) -> Grant:
        """Make a grant from `draft`, which gives scope and expiry; its maker is the reviewer."""
        if draft.when:
            self._compile_condition(draft.when)
        spec = await self._store.spec(draft.spec_sha256)
        if spec is not None:
            grants.check_budget_argument(draft, spec)
        making = draft.workspace, maker
        return await self._store.add_grant(*making, lambda moment, who: grants.make(draft, who, moment))

    async def revoke(self, workspace: str, grant_id: str, by: Reviewer, reason: str = "") -> Grant:
        return await self._store.update_grant(
            workspace, grant_id, lambda grant, moment: grants.revoke(grant, by, moment, reason)
        )

    async def erase(
        self, workspace: str, erasure: Erasure, reviewer: Reviewer, *, dry_run: bool = False
    ) -> AsyncIterator[ErasureResult]:
        """Erase permanently, in batches; an interrupted erasure can be restarted. Its author is always the reviewer."""
        if reviewer.role != "admin":
            raise Forbidden("Only admins erase content. Ask an admin of the workspace.")
        async for erased in self._store.erase(workspace, replace(erasure, by=reviewer.name), dry_run=dry_run):
            yield erased

    async def reviewer(self, workspace: str, name: str, via: str, role: str = "reviewer") -> Reviewer:
        """A person of the workspace; `role` is for unknown ones. A removed one gets a viewer's role."""
        users = await self._store.users(workspace)
        user = next((user for user in users if user.name == name), User(name, role))
        if user.removed_at is not None:
            return Reviewer(name, "viewer", teams=frozenset(), via=via)
        return Reviewer(
            name,
            user.role,
            teams=user.teams,
            via=via,
            delegations_to_me=active_delegations(users, name, user.teams, self._clock()),
        )

    async def find_delegations(self, workspace: str, name: str, teams: frozenset[str]) -> tuple[Delegation, ...]:
        """Delegations of people who are away and let this one decide in their place."""
        return active_delegations(await self._store.users(workspace), name, teams, self._clock())

    async def _revocation(self, grant: Grant) -> Entry | None:
        """Search the newest entries only: there is no index for it."""
        newest = (await self._store.head(grant.workspace)).seq
        async for page in self._store.entries(grant.workspace, max(0, newest - REVOCATION_LOOKBACK)):
            for entry in page:
                if entry.kind == "grant_revoked" and json.loads(entry.data)["grant"] == grant.id:
                    return entry
        return None

    async def _attempt(
        self, workspace: str, approval_id: str, decision: Decision | Error, reviewer: Reviewer
    ) -> Approval | Error:
        try:
            if isinstance(decision, Error):
                return await self.record_refusal(workspace, approval_id, None, reviewer, decision)
            return await self.decide(workspace, approval_id, decision, reviewer)
        except Error as error:
            return error

    async def _prepare_decision(
        self, workspace: str, approval_id: str, decision: Decision, stored: Stored | None = None
    ) -> PreparedDecision:
        """Prepare before the transaction: a checked edit or answer, or whether the current policy denies the call.

        `stored` is the approval, if the caller has read it: what is prepared must be of the same version.
        """
        match decision:
            case Approve():
                return (await self.in_force.recheck(workspace, approval_id)).reviewer_error
            case Edit() | Respond():
                prepared = await self._prepare(stored or await self._store.get(workspace, approval_id), decision)
                return lambda _: prepared
            case _:
                return lambda _: None

    async def _prepare(self, stored: Stored, decision: Edit | Respond) -> PreparedEdit | Error | None:
        """Prepare before the transaction, which accepts it only if nothing changed meanwhile."""
        try:
            match decision:
                case Edit():
                    return await self._prepare_edit(stored, decision)
                case Respond():
                    return self._answer_problem(stored, decision)
        except InvalidRequest as error:
            return InvalidDecision(error.message, [Problem("/args", error.message)], approval_id=stored.approval.id)

    async def _prepare_edit(self, stored: Stored, decision: Edit) -> PreparedEdit | Error:
        """Check an edit by the tool's schema and the current policy; errors go to the person, not to the model."""
        approval, spec = stored.approval, await self._spec(stored.approval)
        key = await self._store.secret_key(approval.subject.workspace)
        wanted = cast(Args, read_canonical(decision.data))
        whole, problems = restore(wanted, stored.payload.args or b"{}", spec, key)
        problems += self._validate(spec.schema, whole) if spec.schema is not None else ()
        if problems:
            listed = "; ".join(map(str, problems))
            return InvalidDecision(f"The edit does not fit the tool: {listed}.", problems, approval_id=approval.id)
        args = canonical(whole)
        shown = redact(args, spec, key)
        verdict = await self.in_force.judge_approval(approval, args, spec)
        if isinstance(verdict, Deny):
            return denied_now_error(verdict, approval).for_decision()
        findings = call_findings(spec, shown.value, shown.secrets)
        return PreparedEdit(
            replaces=approval.args_sha256,
            args=args,
            shown=shown.data if shown.data != args else None,
            args_sha256=shown.sha256,
            sentence=call_sentence(self._prefer_registered_spec(approval, spec), shown),
            alarms=tuple(finding.id for finding in findings if finding.level == "alarm"),
            terms=verdict if isinstance(verdict, Ask) else approval.terms,
            changes=args_diff(redact(stored.payload.args or b"{}", spec, key), shown),
        )

    def _prefer_registered_spec(self, approval: Approval, stored: ToolSpec) -> ToolSpec:
        """The registered tool if its definition is the stored one, because a stored definition has no functions."""
        own = self.find_registered_spec(approval.subject.workspace, approval.subject.tool)
        return own if own is not None and own.sha256 == stored.sha256 else stored

    def _answer_problem(self, stored: Stored, decision: Respond) -> Error | None:
        asked = cast(Mapping[str, object], read_canonical(stored.payload.args or b"{}"))
        schema, choices = asked.get("schema"), asked.get("choices")
        if stored.approval.subject.tool != QUESTION_TOOL or (schema is None and choices is None):
            return None
        said = decision.message if decision.answer is None else decision.answer
        schema = {"enum": choices} if schema is None else schema  # an empty schema accepts anything
        problems = self._validate(cast(Mapping[str, object], schema), said)
        if not problems:
            return None
        listed = "; ".join(map(str, problems))
        message = f"The answer does not fit the question: {listed}."
        return InvalidDecision(message, problems, approval_id=stored.approval.id)

    async def _spec(self, approval: Approval) -> ToolSpec:
        spec = await self._store.spec(approval.subject.spec_sha256)
        if spec is None:
            raise NotFound("The definition of this tool is missing from the database.", approval_id=approval.id)
        return spec

    async def _card(self, stored: Stored, spec: ToolSpec) -> Card:
        key = await self._store.secret_key(stored.approval.subject.workspace)
        return await offload(len(stored.payload.args or b""), lambda: _approval_card(stored, spec, key))


def _approval_card(stored: Stored, spec: ToolSpec, key: bytes) -> Card:
    approval, payload = stored.approval, stored.payload
    subject = approval.subject
    shown = payload.shown if payload.shown is not None else payload.args
    value = cast(Args, read_canonical(shown or b"{}"))
    secrets = redact(payload.args or b"{}", spec, key).secrets
    said = card_texts(spec, payload, RedactedArgs(shown or b"{}", value, approval.args_sha256, secrets))
    facts = {
        "requester": subject.requester,
        "agent": " > ".join(subject.agent_path) or subject.agent,
        "thread": subject.thread_id,
        "rule": approval.terms.rule or "default",
        "claimed effect": _claimed_effect(approval, spec),
        "erased": _erased_text(approval),
        "grant": _grant_text(approval),
        **{f"note {number}" if number > 1 else "note": note for number, note in enumerate(approval.terms.notes, 1)},
    }
    return make_card(
        tool=subject.tool,
        sentence=said.sentence or (ERASED_MESSAGE if approval.erasure else f"Execute {subject.tool}?"),
        risk=risk_level(subject.effect, subject.priority),
        facts=tuple((label, text) for label, text in facts.items() if text),
        args=value,
        findings=call_findings(spec, value, secrets) + schema_findings(approval.findings.schema_errors),
        secrets=secrets,
        preview=said.preview,
        agent_says=payload.agent_says or "",
        agent_description=said.agent_description,
        agent_preview=said.agent_preview,
    )


def active_delegations(users: Iterable[User], name: str, teams: frozenset[str], now: int) -> tuple[Delegation, ...]:
    away = [user for user in users if user.removed_at is None and user.name != name and now < (user.away_until or 0)]
    return tuple(
        Delegation(user.name, user.teams, user.role, user.away_to)
        for user in away
        if user.away_to is not None and user.away_to.include(name, teams)
    )


def _grant_text(approval: Approval) -> str:
    """The grant that allowed it, and its maker."""
    if not approval.grant_id or approval.decision is None:
        return ""
    return f"{approval.grant_id}, made by {approval.decision.by}"


def _claimed_effect(approval: Approval, spec: ToolSpec) -> str:
    """The effect that the agent declares, if it was not trusted."""
    if not spec.declared or spec.effect == approval.subject.effect:
        return ""
    return f"{spec.effect}, declared by the agent alone; not trusted"


def _erased_text(approval: Approval) -> str:
    if approval.erasure is None:
        return ""
    return f"{datetime.fromtimestamp(approval.erasure.at // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC by {approval.erasure.by}"


def _decide(
    decision: Decision, prepare: PreparedDecision, approval: Approval, moment: Moment, reviewer: Reviewer
) -> Change[Approval]:
    return approvals.decide(approval, decision, reviewer, moment, prepare(approval))
