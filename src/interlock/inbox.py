"""The human's door: list, show, decide, undo, bulk, delegate, resolve an unknown, and grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from interlock.core import approval as approvals
from interlock.core import grant as grants
from interlock.core.approval import Approval, Edited
from interlock.core.call import Args, ToolCall, ToolSpec, redact, restore
from interlock.core.canonical import canonical, read
from interlock.core.card import Card, find, make_card, risk_of
from interlock.core.decision import Decision, Edit, Respond, Reviewer
from interlock.core.errors import Error, InvalidDecision, InvalidRequest, NotFound, Problem
from interlock.core.event import Stored
from interlock.core.grant import Grant
from interlock.core.ledger import Entry
from interlock.core.outcome import status_at
from interlock.core.policy import Ask, Deny, People, Policy
from interlock.core.ports import Clock, Conditions, Page, Query, Stats, Store, Validator

QUESTION = "request_human_input"


@dataclass(frozen=True, slots=True)
class View:
    """One approval as a person sees it; `status` is by the clock, the card from the stored bytes."""

    stored: Stored
    status: str
    card: Card
    timeline: Sequence[Entry]


class Inbox:
    def __init__(self, store: Store, policy: Policy, clock: Clock, conditions: Conditions, validate: Validator) -> None:
        self.policy = policy
        self._store = store
        self._clock = clock
        self._conditions = conditions
        self._validate = validate

    async def list(self, workspace: str, query: Query) -> Page:
        return await self._store.list(workspace, query)

    async def stats(self, workspace: str) -> Stats:
        return await self._store.stats(workspace)

    async def show(self, workspace: str, approval_id: str) -> View:
        stored = await self._store.get(workspace, approval_id)
        spec = await self._spec(stored.approval)
        timeline = await self._store.timeline(workspace, approval_id)
        status = status_at(stored.approval, self._clock())
        return View(stored, status, await self._card(stored, spec), timeline)

    async def decide(self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer) -> Approval:
        prepared: Edited | Error | None = None
        if isinstance(decision, Edit | Respond):
            stored = await self._store.get(workspace, approval_id)
            prepared = await self._prepare(stored, decision)
        return await self._store.transition(
            workspace,
            approval_id,
            lambda approval, moment: approvals.decide(approval, decision, reviewer, moment, prepared),
        )

    async def bulk(
        self, workspace: str, decisions: Sequence[tuple[str, Decision]], reviewer: Reviewer
    ) -> Sequence[Approval | Error]:
        """One result each: a decision that fails stops none of the others."""
        return [await self._attempt(workspace, approval_id, each, reviewer) for approval_id, each in decisions]

    async def undo(self, workspace: str, approval_id: str, reviewer: Reviewer) -> Approval:
        return await self._store.transition(
            workspace, approval_id, lambda approval, moment: approvals.undo(approval, reviewer, moment)
        )

    async def delegate(self, workspace: str, approval_id: str, to: People, reviewer: Reviewer) -> Approval:
        return await self._store.transition(
            workspace, approval_id, lambda approval, moment: approvals.delegate(approval, to, reviewer, moment)
        )

    async def resolve_unknown(
        self, workspace: str, approval_id: str, reviewer: Reviewer, *, ok: bool, note: str = "", result: object = None
    ) -> Approval:
        kept = None if result is None else canonical(result)
        return await self._store.transition(
            workspace,
            approval_id,
            lambda approval, moment: approvals.resolve_unknown(approval, note, reviewer, kept, moment, ok=ok),
        )

    async def grants(self, workspace: str) -> Sequence[Grant]:
        return await self._store.grants(workspace)

    async def grant(self, draft: Grant, maker: Reviewer) -> Grant:
        """`draft` says what it covers and until when; who made it comes from the reviewer."""
        if draft.when:
            self._conditions(draft.when)
        return await self._store.add_grant(draft.workspace, lambda moment: grants.make(draft, maker, moment))

    async def revoke(self, workspace: str, grant_id: str, by: Reviewer) -> Grant:
        return await self._store.step_grant(workspace, grant_id, lambda grant, moment: grants.revoke(grant, by, moment))

    async def reviewer(self, workspace: str, name: str, via: str, role: str = "reviewer") -> Reviewer:
        """A person as the workspace knows them; `role` is for those whom it does not know."""
        for user in await self._store.users(workspace):
            if user.name == name:
                return Reviewer(name, user.role, user.teams, via)
        return Reviewer(name, role, frozenset(), via)

    async def _attempt(
        self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer
    ) -> Approval | Error:
        try:
            return await self.decide(workspace, approval_id, decision, reviewer)
        except Error as error:
            return error

    async def _prepare(self, stored: Stored, decision: Edit | Respond) -> Edited | Error | None:
        """Worked out before the transaction; the transaction only takes it if nothing changed meanwhile."""
        try:
            match decision:
                case Edit():
                    return await self._edited(stored, decision)
                case Respond():
                    return self._answer_problem(stored, decision)
        except InvalidRequest as error:
            return InvalidDecision(error.message, [Problem("/args", error.message)], approval_id=stored.approval.id)

    async def _edited(self, stored: Stored, decision: Edit) -> Edited | Error:
        """Checked by the tool's schema and judged by the policy of now; errors go to the person, not to the model."""
        approval, spec = stored.approval, await self._spec(stored.approval)
        key = await self._store.secret_key(approval.subject.workspace)
        wanted = cast(Args, read(decision.data))
        whole, problems = restore(wanted, stored.payload.args or b"{}", spec, key)
        problems += self._validate(spec.schema, whole) if spec.schema is not None else ()
        if problems:
            listed = "; ".join(map(str, problems))
            return InvalidDecision(f"The edit does not fit the tool: {listed}.", problems, approval_id=approval.id)
        args = canonical(whole)
        shown = redact(args, spec, key)
        verdict = self.policy.judge(_call(approval, args), spec)
        if isinstance(verdict, Deny):
            message = f"The policy forbids the edited call: {verdict.reason}"
            return InvalidDecision(message, [Problem("/args", verdict.reason)], approval_id=approval.id)
        return Edited(
            approval.args_sha256,
            args,
            shown.data if shown.data != args else None,
            shown.sha256,
            spec.sentence(shown.value),
            tuple(f.id for f in find(shown.value, spec.known_arguments, shown.secrets) if f.level == "alarm"),
            verdict if isinstance(verdict, Ask) else approval.terms,
        )

    def _answer_problem(self, stored: Stored, decision: Respond) -> Error | None:
        asked = cast(Mapping[str, object], read(stored.payload.args or b"{}"))
        if stored.approval.subject.tool != QUESTION or not ("schema" in asked or "choices" in asked):
            return None
        said = decision.message if decision.answer is None else decision.answer
        schema = asked.get("schema") or {"enum": asked["choices"]}
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
        approval, payload = stored.approval, stored.payload
        subject = approval.subject
        shown = payload.shown if payload.shown is not None else payload.args
        value = cast(Args, read(shown or b"{}"))
        key = await self._store.secret_key(subject.workspace)
        secrets = redact(payload.args or b"{}", spec, key).secrets
        facts = {
            "requester": subject.requester,
            "agent": " > ".join(subject.agent_path) or subject.agent,
            "thread": subject.thread_id,
            "rule": approval.terms.rule or "default",
        }
        return make_card(
            tool=subject.tool,
            sentence=payload.sentence or f"Execute {subject.tool}?",
            risk=risk_of(subject.effect, subject.priority),
            facts=tuple((label, text) for label, text in facts.items() if text),
            args=value,
            findings=find(value, spec.known_arguments, secrets),
            secrets=secrets,
            preview=payload.preview or "",
            agent_says=payload.agent_says or "",
        )


def _call(approval: Approval, args: bytes) -> ToolCall:
    subject = approval.subject
    call = ToolCall(subject.tool, args, subject.run_id, subject.call_id, subject.workspace, subject.agent)
    return replace(
        call,
        agent_path=subject.agent_path,
        thread_id=subject.thread_id,
        requester=subject.requester,
        priority=subject.priority,
    )
