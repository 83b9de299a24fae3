"""The policy and the freezes in force in a workspace: they stop new calls, and calls that were approved before."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from interlock.core import freeze
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.confusables import fold_confusables
from interlock.core.errors import DeniedNow, Frozen, Stale
from interlock.core.freeze import ANY_AGENT, Freeze, approval_target, call_target
from interlock.core.ledger.event import Moment
from interlock.core.outcome import Outcome, Proceed, Waiting
from interlock.core.pins import Pins
from interlock.core.policy.claims import judge_stored
from interlock.core.policy.policy import Deny, Policy, Verdict
from interlock.core.ports import AgentVersion, ApprovalPage, PolicyRevision, PolicyVersion, StartConditions, Store
from interlock.core.rate_limit import ReadEntryLimiter

MAX_CACHED_CALLS = 10_000  # calls whose judgement is cached
MAX_JUDGEMENTS = 10  # of one call that is edited, or whose policy changes, each time before it is written
MAX_AGENT_NAMES = 200  # agents' names per key; a key that uses more is covered by every agent's freeze

T = TypeVar("T")


class JudgementOutdated(Stale):
    """The call was edited, or another policy was put in force, after it was judged."""


class PolicyOutdated(JudgementOutdated):
    """The database holds another policy than the one in force in this process."""


class PolicyEpoch(NamedTuple):
    """The basis of judgements: a policy, and the people as they are while this object is the current one.

    `revision` is the stored policy's that it was made from; None for a policy that was not read from the database.
    """

    policy: Policy
    revision: PolicyRevision | None = None


class RecheckResult(NamedTuple):
    """The verdict on a stored call; `binding` identifies the arguments, `epoch` the policy that judged them."""

    in_force: PolicyInForce
    epoch: PolicyEpoch
    binding: str
    denied: Deny | None = None

    def check(self, approval: Approval) -> Deny | None:
        """Check inside the transaction; raises JudgementOutdated if other arguments or another policy were judged."""
        if self.binding != approval.binding:
            raise JudgementOutdated("The arguments changed in the meantime. Reload the card.", approval_id=approval.id)
        if self.epoch is not self.in_force.epoch:
            raise JudgementOutdated("The policy changed in the meantime. Try again.", approval_id=approval.id)
        return self.denied

    def check_revision(self, approval: Approval, revision: PolicyRevision) -> None:
        """Check inside the transaction; raises PolicyOutdated if another process has stored another policy."""
        if self.epoch.revision not in (None, revision):
            raise PolicyOutdated("The policy changed meanwhile. Try again.", approval_id=approval.id)

    def reviewer_error(self, approval: Approval) -> DeniedNow | None:
        """The error why they cannot approve it."""
        denied = self.check(approval) if approval.status == "pending" else None
        return None if denied is None else denied_now_error(denied, approval).for_decision()


SpecLookup = Callable[[str, str], ToolSpec | None]


async def _reload_nothing() -> None:
    """Nothing to read the policy from."""


def no_registered_specs(_: str, __: str) -> None:
    """No tools are registered."""


class PolicyInForce:
    """The policy and the freezes that a gate, its copies and its inbox share, so that all judge by the same ones.

    `epoch` holds the policy; it is the same object until another policy is in force (its digest does not cover
    switches), or people or pins are seen to have changed. `freezes` are the open ones, as read within the last second.
    `reload` puts the stored policy in force, for a start that finds a newer one than it was judged by.
    `find_registered_spec` finds the tools that are registered in this process, by workspace and name. Who reads the
    policy to change it holds `lock`: programs set switches from their own threads.
    """

    def __init__(self, store: Store, policy: Policy) -> None:
        self.epoch = PolicyEpoch(policy)
        self.lock = threading.RLock()
        self.freezes: tuple[Freeze, ...] = ()
        self.read_entry_limiter = ReadEntryLimiter()
        self.reload: Callable[[], Awaitable[object]] = _reload_nothing
        self.find_registered_spec: SpecLookup = no_registered_specs
        self._store = store
        self._rechecks: dict[str, RecheckResult] = {}  # of the current epoch, not denied
        self._key_agents: dict[tuple[str, str], set[str]] = defaultdict(set)  # agents' names by workspace and key
        self._recorded_callers: set[tuple[str, str, tuple[str, ...], str]] = (
            set()
        )  # callers whose names are certainly recorded

    @property
    def policy(self) -> Policy:
        return self.epoch.policy

    def set_policy(self, policy: Policy, revision: PolicyRevision | None = None) -> None:
        """Put a policy in force, for the gate and the inbox at once: the only place that does."""
        with self.lock:
            self.epoch = PolicyEpoch(policy, revision)
            self._rechecks.clear()

    # Freezes

    def needs_freeze_check(self, call: ToolCall) -> bool:
        """Whether `find_freeze` has to be called: there are freezes, or a key, whose use of names it records."""
        return bool(self.freezes) or call.caller is not None

    async def find_freeze(self, call: ToolCall) -> Freeze | None:
        """The freeze that covers a new call."""
        caller = call.caller
        if (
            caller is not None
            and (call.workspace, caller.credential, call.agent_path, call.agent) not in self._recorded_callers
        ):
            await self._use_key(call)
        return freeze.find_active_freeze(self.freezes, call_target(call)) if self.freezes else None

    def start_error(
        self, approval: Approval, runner: str, conditions: StartConditions, recheck: RecheckResult
    ) -> Frozen | DeniedNow | None:
        """The error inside the transaction of a start, with what it has read; raises JudgementOutdated."""
        freezes = conditions.freezes
        active_freeze = (
            freeze.find_active_freeze(freezes, approval_target(approval, freeze.runner_key_id(runner)))
            if freezes
            else None
        )
        if active_freeze is not None:
            self.freezes = tuple(freezes)  # so that the next check knows of it
            return freeze.frozen_error(active_freeze, approval.id)
        if approval.status not in ("approved", "running"):
            return None
        recheck.check_revision(approval, conditions.policy_revision)
        denied = recheck.check(approval)
        return None if denied is None else denied_now_error(denied, approval)

    def defer_approval(self, approval: Approval, now: int) -> Approval:
        """The approval with deadlines moved by active freezes."""
        return freeze.defer_deadlines(approval, self.freezes, Moment(now)).state if self.freezes else approval

    def defer_page(self, page: ApprovalPage, now: int) -> ApprovalPage:
        if not self.freezes:
            return page
        items = (stored._replace(approval=self.defer_approval(stored.approval, now)) for stored in page.items)
        return replace(page, items=tuple(items))

    def wait_if_frozen(self, outcome: Outcome, approval: Approval) -> Outcome:
        """Wait instead of proceeding while a freeze covers the call."""
        if (
            isinstance(outcome, Proceed)
            and self.freezes
            and freeze.find_active_freeze(self.freezes, approval_target(approval))
        ):
            return Waiting(approval.id, approval.status, until=None, args_sha256=approval.args_sha256)
        return outcome

    async def fetch_start_error(self, approval: Approval, key: str = "") -> Frozen | DeniedNow | None:
        """Why an approved call would not start now with this key, for callers that check before they start it.

        The freezes are read again, because the caller may not check a second time.
        """
        freezes = await self._store.open_freezes(approval.subject.workspace)
        active_freeze = freeze.find_active_freeze(freezes, approval_target(approval, key))
        if active_freeze is not None:  # not kept where there is none: a freeze may have begun since the read
            return freeze.frozen_error(active_freeze, approval.id)
        denied = (await self.recheck(approval.subject.workspace, approval.id)).denied
        return None if denied is None else denied_now_error(denied, approval)

    async def _use_key(self, call: ToolCall) -> None:
        """Record once the agents' names that a key has used: a freeze of one of those agents covers the key."""
        if not call.key:
            return
        used = self._key_agents[call.workspace, call.key]
        new = {fold_confusables(agent) for agent in call.path} - used
        if new and ANY_AGENT not in used:
            new = new if len(used) + len(new) <= MAX_AGENT_NAMES else {ANY_AGENT}
            await self._store.record_key_agents(call.workspace, call.key, sorted(new))
            used |= new
        if not call.agent_path:
            if len(self._recorded_callers) >= MAX_CACHED_CALLS:
                self._recorded_callers.clear()
            self._recorded_callers.add((call.workspace, call.key, (), call.agent))

    # The current policy

    def cache_allowed(self, epoch: PolicyEpoch, approval: Approval) -> None:
        """Cache that the stored call was judged and not denied, for the current epoch."""
        if epoch is not self.epoch:
            return
        if len(self._rechecks) >= MAX_CACHED_CALLS:
            self._rechecks.clear()
        self._rechecks[approval.id] = RecheckResult(self, epoch, approval.binding)

    def invalidate(self, approval_id: str) -> None:
        self._rechecks.pop(approval_id, None)

    async def retry_if_outdated(self, approval_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """Retry `work` if the judgement is outdated by the time it is used; raises JudgementOutdated in the end."""
        left = MAX_JUDGEMENTS
        while True:
            try:
                return await work()
            except JudgementOutdated as outdated:
                self.invalidate(approval_id)
                left -= 1
                if not left:
                    raise
                if isinstance(outdated, PolicyOutdated):
                    await self.reload()

    def invalidate_all(self) -> None:
        """Start a new epoch: people changed, and rules use their teams; or pins did, and rules use effects."""
        with self.lock:
            self.set_policy(*self.epoch)

    async def recheck(self, workspace: str, approval_id: str) -> RecheckResult:
        epoch = self.epoch
        known = self._rechecks.get(approval_id)
        if known is not None:
            return known
        approval, payload = await self._store.get(workspace, approval_id)
        spec = await self._store.spec(approval.subject.spec_sha256) or ToolSpec(approval.subject.tool)
        verdict = await self.judge_approval(approval, payload.args or b"{}", spec)
        if isinstance(verdict, Deny):
            return RecheckResult(self, epoch, approval.binding, verdict)
        self.cache_allowed(epoch, approval)
        return RecheckResult(self, epoch, approval.binding)

    async def judge_approval(self, approval: Approval, args: bytes, spec: ToolSpec) -> Verdict:
        """The one place that judges a stored call."""
        policy = self.policy
        spec = await self._current_spec(approval, spec)
        requester = approval.subject.requester
        users = await self._store.users(approval.subject.workspace) if requester else ()
        person = next((user for user in users if user.name == requester), None)
        judge = partial(judge_stored, policy, approval, args, spec)
        if person is not None and person.removed_at is not None:
            judge = partial(judge, removed=True)
        elif person is not None:
            judge = partial(judge, tuple(sorted(person.teams)), (person.email,) if person.email else ())
        return judge() if len(args) <= policy.max_inline_bytes else await asyncio.to_thread(judge)

    async def _current_spec(self, approval: Approval, spec: ToolSpec) -> ToolSpec:
        """The definition with the currently registered or pinned effect, which replaces earlier claims.

        The definition of a program with the database was trusted then, and still is.
        """
        subject = approval.subject
        if not subject.known and not spec.declared:
            return spec
        known = self.find_registered_spec(subject.workspace, subject.tool)
        if known is None:
            pin = Pins(tuple(await self._store.pins(subject.workspace))).find(subject.tool)
            known = None if pin is None else pin.spec
        return spec if known is None else replace(spec, effect=known.effect, declared=False)


def policy_revision(stored: PolicyVersion | None, agents: Iterable[AgentVersion]) -> PolicyRevision:
    """The revision of a policy and of agents' settings that were read."""
    return PolicyRevision(stored.version if stored else 0, sum(agent.version for agent in agents))


def merge_toggles(
    configured: Mapping[str, Mapping[str, bool]], agents: Iterable[AgentVersion]
) -> dict[str, Mapping[str, bool]]:
    """Switches by agent: those of the configuration, replaced by those of agents that are stored with their own."""
    stored = {agent.name: json.loads(agent.body) for agent in agents}
    changed = {name: body["tool_approvals"] for name, body in stored.items() if "tool_approvals" in body}
    return {**configured, **changed}


def combine_toggles(
    of_program: Mapping[str, Mapping[str, bool]], agents: Iterable[AgentVersion]
) -> dict[str, Mapping[str, bool]]:
    """Switches by agent: those of an embedded program and the stored ones; where they differ, approval is required."""
    stored = merge_toggles({}, agents)
    combined: dict[str, Mapping[str, bool]] = {}
    for name in {**stored, **of_program}:
        ours, theirs = of_program.get(name, {}), stored.get(name, {})
        combined[name] = {tool: ours.get(tool, False) or theirs.get(tool, False) for tool in {**theirs, **ours}}
    return combined


def denied_now_error(denied: Deny, approval: Approval) -> DeniedNow:
    by = f" (rule {denied.rule!r})" if denied.rule else ""
    message = f"The policy that is in force now denies this call{by}: {denied.reason}"
    return DeniedNow(message, approval_id=approval.id, rule=denied.rule, reason=denied.reason)
