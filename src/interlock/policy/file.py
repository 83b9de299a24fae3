"""Policy files: YAML or JSON with conditions in CEL, parsed into core's rules. Errors name lines.

It is long because a configured policy, and whether it is stale, is decided where its text is read.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import cast

from interlock.config.models import InlinePolicy, PolicyFile, Settings
from interlock.config.yaml import Fields, YamlNode, YamlReader
from interlock.core.call import EFFECTS, MAX_NAME, PRIORITIES, SETTINGS
from interlock.core.confusables import matches_pattern
from interlock.core.decision import KINDS
from interlock.core.errors import Misconfigured
from interlock.core.notify.routing import DESTINATION_PREFIX
from interlock.core.policy.policy import (
    Ask,
    Condition,
    Defaults,
    EscalationStep,
    OnExpiry,
    People,
    Policy,
    Rule,
    Stage,
    VerdictKind,
)
from interlock.core.ports import ConditionCompiler, PolicyVersion
from interlock.runtime.durations import format_duration

TOP_KEYS = ("version", "defaults", "rules", "agents", "trust_declared")
MATCHERS = ("tools", "effect", "agents", "users", "teams", "priorities")
WINDOW_KEYS = ("expires_in", "on_expiry", "escalate", "remind", "undo_window", "start_within")
ASK_KEYS = ("approvers", "quorum", "stages", "exclude", "decisions", "priority", "channels", *WINDOW_KEYS)
RULE_KEYS = ("name", *MATCHERS, "when", "then", "reason", "mode", *ASK_KEYS)
DEFAULTS_KEYS = ("unknown_tools", "trust_declared", *WINDOW_KEYS)
EXCLUSIONS = {"requester": "requester", "editor": "editor", "editors": "editor"}
MAX_QUORUM = 100
NO_TERMS = Ask()
_CHARACTER_CLASS = re.compile(r"\[[^\]]+\]")  # other programs take this for a character class


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that a policy may refer to; None if unknown, and then not checked.

    `has_destinations` says whether a channel has some, such as #finance-ops; their names are not known here.
    """

    teams: frozenset[str] | None = None
    channels: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    users: frozenset[str] | None = None
    has_destinations: bool = True


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A loaded policy; `rule_lines` gives the line of each rule."""

    policy: Policy
    warnings: tuple[str, ...] = ()
    rule_lines: Mapping[str, int] = field(default_factory=dict)


def read_policy_file(path: Path) -> str:
    """Read the text of a policy file; raises Misconfigured if that fails."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"The policy {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Misconfigured(f"The policy {path} is not UTF-8.") from None


def load_policy(
    text: str,
    compile_condition: ConditionCompiler,
    names: KnownNames | None = None,
    toggles: Mapping[str, Mapping[str, bool]] | None = None,
    reminders: tuple[int, ...] | None = None,
    expires_in: int | None = None,
) -> LoadedPolicy:
    """Load a policy: raises one Misconfigured with every problem. `toggles` come from the agents' configuration.

    `reminders` and `expires_in` are those of the configuration, for a policy without them; None if it has none either.
    """
    parser = _PolicyParser(
        names=names or KnownNames(), compile=compile_condition, reminders=reminders, expires_in=expires_in
    )
    with _collector_paused():
        return _load(text, parser, toggles or {})


def _load(text: str, parser: _PolicyParser, toggles: Mapping[str, Mapping[str, bool]]) -> LoadedPolicy:
    top = parser.read.document(text, TOP_KEYS, "a policy")
    parser.read.integer(top, "version", 1, 1, 1)
    defaults = _defaults(parser, top)
    rules = tuple(_rules(parser, top, defaults))
    switches = _toggles(parser, top, toggles)
    parser.read.finish()
    parser.warnings.extend(_unreachable(rules, parser.rule_lines))
    warnings = tuple(f"line {line}: {message}" for line, message in sorted(parser.warnings))
    return LoadedPolicy(
        Policy(rules, defaults, switches, sha256(text.encode()).hexdigest()), warnings, parser.rule_lines
    )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nothing made here is garbage: repeated collections take a third of a long load."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(slots=True, kw_only=True)
class _PolicyParser:
    names: KnownNames
    compile: ConditionCompiler
    reminders: tuple[int, ...] | None = None
    expires_in: int | None = None
    read: YamlReader = field(default_factory=YamlReader)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    rule_lines: dict[str, int] = field(default_factory=dict)


def _defaults(parser: _PolicyParser, top: Fields) -> Defaults:
    reader, fields, base = parser.read, parser.read.section(top, "defaults", DEFAULTS_KEYS), Defaults()
    escalation_steps = _escalation(parser, fields)
    on_expiry = reader.choice(fields, "on_expiry", ("reject", "escalate", "approve"), base.on_expiry)
    if on_expiry == "approve":
        reader.add_problem(fields["on_expiry"].line, "only a rule may say on_expiry: approve, never the defaults")
    if on_expiry == "escalate" and not escalation_steps:
        reader.add_problem(fields["on_expiry"].line, "on_expiry: escalate needs escalate steps in the defaults")
    trust = reader.boolean(top, "trust_declared", default=base.trust_declared)
    configured = {} if parser.expires_in is None else dict.fromkeys(SETTINGS, parser.expires_in)
    defaults = Defaults(
        unknown_tools="deny" if reader.choice(fields, "unknown_tools", ("ask", "deny"), "ask") == "deny" else "ask",
        expires_in={**base.expires_in, **configured, **_expires_in(parser, fields)},
        on_expiry=cast(OnExpiry, on_expiry),
        undo_window=reader.duration(fields, "undo_window", base.undo_window),
        start_within=reader.duration(fields, "start_within", base.start_within, 1),
        remind=_remind(parser, fields, base.remind if parser.reminders is None else parser.reminders),
        escalation_steps=escalation_steps,
        trust_declared=reader.boolean(fields, "trust_declared", default=trust) and trust,
    )
    _check_times(parser, fields, defaults.expires_in, escalation_steps, _remind(parser, fields, ()))
    return defaults


def _rules(parser: _PolicyParser, top: Fields, defaults: Defaults) -> Iterator[Rule]:
    for item in parser.read.entries(top, "rules"):
        fields = parser.read.fields(item, RULE_KEYS, "a rule")
        if isinstance(item.value, dict):
            yield _rule(parser, item.line, fields, defaults)


def _rule(parser: _PolicyParser, line: int, fields: Fields, defaults: Defaults) -> Rule:
    reader = parser.read
    name = _name(parser, line, fields)
    then = reader.choice(fields, "then", ("allow", "deny", "ask"))
    if "then" not in fields:
        reader.add_problem(line, "a rule needs then: allow, deny or ask")
    windows = _expires_in(parser, fields) if then == "ask" else {}
    when, source = _condition(parser, fields)
    if then in ("allow", "deny"):
        _check_no_terms(parser, fields, then)
    return Rule(
        name,
        cast(VerdictKind, then),
        tools=_tools(parser, fields),
        effects=frozenset(reader.texts(fields, "effect", EFFECTS)),
        agents=_patterns(parser, fields, "agents"),
        users=_users(parser, fields),
        teams=frozenset(reader.texts(fields, "teams", parser.names.teams, "team")),
        priorities=frozenset(reader.texts(fields, "priorities", PRIORITIES, "priority")),
        when=when,
        reason=reader.text(fields, "reason"),
        ask=_ask(parser, fields, defaults, {**defaults.expires_in, **windows}) if then == "ask" else NO_TERMS,
        expires_in=windows,
        shadow=reader.choice(fields, "mode", ("enforce", "shadow")) == "shadow",
        source=source,
    )


def _check_no_terms(parser: _PolicyParser, fields: Fields, then: str) -> None:
    for key in ASK_KEYS:
        if key in fields:
            parser.read.add_problem(fields[key].line, f"{key} goes with then: ask, and this rule says then: {then}")


def _name(parser: _PolicyParser, line: int, fields: Fields) -> str:
    name = parser.read.text(fields, "name")
    if "name" not in fields:
        parser.read.add_problem(line, "a rule needs a name")
    elif len(name) > MAX_NAME:
        parser.read.add_problem(line, f"the name of a rule has at most {MAX_NAME} characters")
    elif name in parser.rule_lines:
        parser.read.add_problem(
            line, f'the rule of line {parser.rule_lines[name]} is called "{name}" too; names are unique'
        )
    else:
        parser.rule_lines[name] = line
    return name


def _tools(parser: _PolicyParser, fields: Fields) -> tuple[str, ...]:
    patterns = _patterns(parser, fields, "tools")
    known = parser.names.tools
    for pattern in patterns if known is not None else ():
        if known is not None and pattern not in known and not any(matches_pattern(tool, pattern) for tool in known):
            parser.warnings.append((fields["tools"].line, f'no registered tool matches "{pattern}"'))
    return patterns


def _users(parser: _PolicyParser, fields: Fields) -> tuple[str, ...]:
    """Patterns such as `*@example.com` may match people who are added later; plain names may not."""
    users = _patterns(parser, fields, "users")
    plain = [name for name in users if not any(mark in name for mark in "*?")]
    if plain:
        _people(
            parser, {"users": YamlNode([YamlNode(name, fields["users"].line) for name in plain], fields["users"].line)}
        )
    return users


def _patterns(parser: _PolicyParser, fields: Fields, key: str) -> tuple[str, ...]:
    patterns = parser.read.texts(fields, key)
    for pattern in patterns:
        if _CHARACTER_CLASS.search(pattern) and pattern not in (parser.names.tools or ()):
            text = f'"{pattern}" stands for itself: only * and ? are wildcards. Write a pattern for each letter'
            parser.warnings.append((fields[key].line, text))
    return patterns


def _condition(parser: _PolicyParser, fields: Fields) -> tuple[Condition | None, str]:
    source = parser.read.text(fields, "when")
    try:
        return (parser.compile(source) if source else None), source
    except Misconfigured as error:
        parser.read.add_problem(fields["when"].line, f"when: {error.message}")
        return None, source


def _ask(parser: _PolicyParser, fields: Fields, defaults: Defaults, windows: Mapping[str, int]) -> Ask:
    reader = parser.read
    own_steps = _escalation(parser, fields)
    _check_times(parser, fields, windows, own_steps, _remind(parser, fields, ()))
    escalation_steps = own_steps or defaults.escalation_steps
    on_expiry = reader.choice(fields, "on_expiry", ("reject", "escalate", "approve"), defaults.on_expiry)
    if on_expiry == "escalate" and not escalation_steps and "on_expiry" in fields:
        reader.add_problem(
            fields["on_expiry"].line, "on_expiry: escalate needs escalate steps in the rule or the defaults"
        )
    exclude = reader.texts(fields, "exclude", EXCLUSIONS, "exclusion")
    return Ask(
        "",
        _stages(parser, fields, escalation_steps),
        exclude=frozenset(EXCLUSIONS.get(name, "") for name in exclude),
        decisions=reader.texts(fields, "decisions", KINDS, "decision") or KINDS,
        priority=reader.choice(fields, "priority", PRIORITIES),  # none: the call's own
        on_expiry=cast(OnExpiry, on_expiry),
        escalation_steps=escalation_steps,
        remind=_remind(parser, fields, defaults.remind),
        undo_window=reader.duration(fields, "undo_window", defaults.undo_window),
        start_within=reader.duration(fields, "start_within", defaults.start_within, 1),
        channels=_channels(parser, fields),
    )


def _stages(parser: _PolicyParser, fields: Fields, escalation_steps: tuple[EscalationStep, ...]) -> tuple[Stage, ...]:
    if "stages" not in fields:
        return (_stage(parser, fields, escalation_steps),)
    for key in ("approvers", "quorum"):
        if key in fields:
            parser.read.add_problem(fields[key].line, f"{key} goes into each of the stages when a rule has stages")
    items = parser.read.entries(fields, "stages")
    if not items:
        parser.read.add_problem(fields["stages"].line, "stages is an empty list; remove the key or put something in it")
    keys = ("approvers", "quorum")
    return tuple(_stage(parser, parser.read.fields(item, keys, "a stage"), escalation_steps) for item in items)


def _stage(parser: _PolicyParser, fields: Fields, escalation_steps: tuple[EscalationStep, ...]) -> Stage:
    quorum = parser.read.integer(fields, "quorum", 1, 1, MAX_QUORUM)
    if "approvers" not in fields:
        return Stage(None, quorum)
    people = _people(parser, parser.read.section(fields, "approvers", ("users", "teams")))
    if fields["approvers"].value == {}:
        parser.read.add_problem(fields["approvers"].line, "approvers names nobody; give users or teams")
    reachable = people.users.union(*(step.to.users for step in escalation_steps))
    open_ended = people.teams or any(step.to.teams for step in escalation_steps)
    if people.users and not open_ended and quorum > len(reachable):
        parser.read.add_problem(
            fields["quorum"].line,
            f"quorum is {quorum}, but only {len(reachable)} may decide; nobody could ever approve",
        )
    return Stage(people, quorum)


def _people(parser: _PolicyParser, fields: Fields) -> People:
    users = parser.read.texts(fields, "users", parser.names.users, "user")
    return People(frozenset(users), frozenset(parser.read.texts(fields, "teams", parser.names.teams, "team")))


def _escalation(parser: _PolicyParser, fields: Fields) -> tuple[EscalationStep, ...]:
    steps = [_escalation_step(parser, item) for item in parser.read.entries(fields, "escalate")]
    return tuple(sorted(steps, key=lambda step: step.after))  # core applies them in this order


def _escalation_step(parser: _PolicyParser, item: YamlNode) -> EscalationStep:
    fields = parser.read.fields(item, ("after", "to", "channels"), "an escalate step")
    people = _people(parser, parser.read.section(fields, "to", ("users", "teams")))
    channels = _channels(parser, fields)
    if "after" not in fields:
        parser.read.add_problem(item.line, "an escalate step needs after: a duration such as 10m")
    if not people.users and not people.teams and not channels:
        parser.read.add_problem(item.line, "an escalate step reaches nobody; give it to: or channels:")
    return EscalationStep(parser.read.duration(fields, "after", 0), people, channels)


def _channels(parser: _PolicyParser, fields: Fields) -> tuple[str, ...]:
    """Names of channels, and of destinations if a channel has any."""
    names = parser.names.channels
    if names is None or "channels" not in fields:
        return parser.read.texts(fields, "channels")
    value = fields["channels"].value
    items = [item.value for item in value] if isinstance(value, list) else [value]
    places = {item for item in items if isinstance(item, str) and item.startswith(DESTINATION_PREFIX)}
    if places and not parser.names.has_destinations:
        parser.read.add_problem(fields["channels"].line, f'"{min(places)}" is a place, and no channel has places')
    return parser.read.texts(fields, "channels", names | places, "channel")


def _remind(parser: _PolicyParser, fields: Fields, default: tuple[int, ...]) -> tuple[int, ...]:
    """Reminders; an empty list means none."""
    if "remind" not in fields:
        return default
    value = fields["remind"].value
    items = value if isinstance(value, list) else [fields["remind"]]
    return tuple(sorted({parser.read.node_duration(item, "remind", 1) for item in items}))


def _expires_in(parser: _PolicyParser, fields: Fields) -> dict[str, int]:
    if "expires_in" not in fields:
        return {}
    if not isinstance(fields["expires_in"].value, dict):
        windows = dict.fromkeys(SETTINGS, parser.read.duration(fields, "expires_in", 0, 1))
    else:
        inner = parser.read.section(fields, "expires_in", SETTINGS)
        windows = {setting: parser.read.duration(inner, setting, 0, 1) for setting in inner}
    return {setting: window for setting, window in windows.items() if window}  # 0 was reported


def _check_times(
    parser: _PolicyParser,
    fields: Fields,
    windows: Mapping[str, int],
    escalation_steps: tuple[EscalationStep, ...],
    reminders: tuple[int, ...],
) -> None:
    """Times after expiry never happen: an error if that is so in all settings, a warning if in some."""
    times = [("escalate", step.after) for step in escalation_steps] + [("remind", after) for after in reminders]
    for key, after in times:
        missed = sorted(setting for setting, window in windows.items() if after >= window)
        what = f"{key} after {format_duration(after)} never happens"
        if len(missed) == len(windows):
            longest = format_duration(max(windows.values()))
            parser.read.add_problem(fields[key].line, f"{what}: the request expires after {longest}")
        elif missed:
            parser.warnings.append(
                (fields[key].line, f"{what} in {' and '.join(missed)}, where requests expire earlier")
            )


def _toggles(
    parser: _PolicyParser, top: Fields, others: Mapping[str, Mapping[str, bool]]
) -> dict[str, dict[str, bool]]:
    """If two sources name the same tool, the one that asks wins."""
    switches = {agent: dict(tools) for agent, tools in others.items()}
    for agent, item in parser.read.mapping(top, "agents").items():
        fields = parser.read.fields(item, ("tool_approvals",), "an agent")
        tools = parser.read.mapping(fields, "tool_approvals")
        mine = switches.setdefault(agent, {})
        for tool, answer in tools.items():
            mine[tool] = parser.read.boolean(tools, tool, default=True) or mine.get(tool, False)
            if parser.names.tools is not None and tool not in parser.names.tools:
                parser.warnings.append((answer.line, f'tool_approvals: no registered tool is called "{tool}"'))
    return switches


def _unreachable(rules: tuple[Rule, ...], lines: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    """Find obvious cases only: an earlier rule without a condition has the same matchers, or covers all the tools."""
    taken: dict[object, str] = {}
    for rule in (rule for rule in rules if not rule.shadow):
        matchers = (rule.effects, rule.agents, rule.users, rule.teams, rule.priorities)
        only_tools = not any(matchers)
        earlier = taken.get(()) or taken.get((rule.tools, *matchers)) or _covering_rule(rule, taken)
        if earlier:
            yield (
                lines[rule.name],
                f'the rule "{rule.name}" is never reached: "{earlier}" before it takes all it could match',
            )
        elif rule.when is None:
            if (
                rule.then != "allow" or not rule.agents
            ):  # a loosening rule needs all of the agent path, others any of it
                taken[(rule.tools, *matchers)] = rule.name
            if only_tools:
                taken.update(dict.fromkeys(rule.tools or [()], rule.name))


def _covering_rule(rule: Rule, taken: Mapping[object, str]) -> str:
    takers = [taken.get(pattern, "") for pattern in rule.tools]
    return takers[0] if takers and all(takers) else ""


@dataclass(frozen=True, slots=True)
class ConfiguredPolicy:
    """The policy of the configuration; `origin` is its file or other source.

    With `is_always_applied` it is put in force at every start.
    """

    text: str
    origin: str
    is_file: bool = True
    is_always_applied: bool = False

    @property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    def check_stale(self, policy_version: PolicyVersion | None) -> StalePolicy | None:
        """None if its text is in force, or no policy is."""
        if policy_version is None or policy_version.sha256 == self.sha256:
            return None
        return StalePolicy(
            self, policy_version.version, policy_version.author, is_combined=policy_version.source == "file"
        )


@dataclass(frozen=True, slots=True)
class StalePolicy:
    """Another version is in force than the process was started with; `is_combined` if both are applied."""

    configured: ConfiguredPolicy
    version: int
    author: str
    is_combined: bool

    @property
    def message(self) -> str:
        replaced = (
            f"The policy of {self.configured.origin} is not in force: "
            f"version {self.version} by {self.author} replaced it"
        )
        if self.is_combined:
            return f"{replaced}. That is another file's, so this process judges by both and the stricter verdict holds."
        return f"{replaced}, and counts alone."

    @property
    def command(self) -> str:
        """The command that puts the configured policy in force again."""
        return f"interlock policy put {self.configured.origin if self.configured.is_file else 'FILE'}"


def read_configured_policy(settings: Settings) -> ConfiguredPolicy | None:
    """The configured policy, or None. Raises Misconfigured for a file that cannot be read."""
    match settings.policy:
        case InlinePolicy(text):
            return ConfiguredPolicy(text, str(settings.file or "the configuration"), is_file=False)
        case PolicyFile(file, apply):
            return ConfiguredPolicy(read_policy_file(file), str(file), is_always_applied=apply == "always")
        case Path() as path:
            return ConfiguredPolicy(read_policy_file(path), str(path))
        case _:
            return None


def load_effective_policy(
    policy_version: PolicyVersion | None, configured: ConfiguredPolicy | None, load: Callable[[str], LoadedPolicy]
) -> tuple[LoadedPolicy, StalePolicy | None]:
    """The policy in force; if that came from another file, combined with the process's own policy."""
    loaded, stale = (
        load(policy_version.body if policy_version else ""),
        configured.check_stale(policy_version) if configured else None,
    )
    if configured is None or stale is None or not stale.is_combined:
        return loaded, stale
    beside = load(configured.text).policy
    return replace(loaded, policy=replace(loaded.policy, second_policy=beside)), stale
