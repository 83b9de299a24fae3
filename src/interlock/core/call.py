"""Tool calls: the call, the definition of its tool, and the digests that bind an approval to both.

It is long because a call, the definition of its tool and the digests that bind both are read together.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from functools import cached_property
from itertools import compress
from operator import is_not
from typing import Any, Literal, NamedTuple, cast, get_args
from unicodedata import category

from interlock.core.canonical import canonical, canonical_args, digest, plain_json, read_canonical
from interlock.core.errors import InvalidRequest, Problem
from interlock.core.fast_dataclasses import fast_construct, fast_replace
from interlock.core.policy.condition_budget import ConditionBudget
from interlock.core.sentence import HIDDEN, arguments_sentence, tool_title

Args = Mapping[str, object]
Effect = Literal["read", "write", "destructive"]
Priority = Literal["low", "medium", "high"]
Setting = Literal["chat", "queue", "paused"]
Switch = Literal["", "on", "off"]
EFFECTS: tuple[str, ...] = get_args(Effect)
PRIORITIES: tuple[str, ...] = get_args(Priority)
SETTINGS: tuple[str, ...] = get_args(Setting)
SWITCHES: tuple[str, ...] = get_args(Switch)
DEFAULT_WORKSPACE = "default"  # the workspace of the configuration file
MAX_NAME = 200
MAX_NAMES = 64
MAX_TEXT_LENGTH = 20_000
MAX_ERROR = 2_000  # characters of the error that a failed call reports
MAX_CHOICES = 100  # answers to choose from, of a question to people
AGENT_ACTOR_PREFIX = (
    "agent:"  # prefix of an agent's name in the ledger; "agent" without the colon is one without a name
)
ANY_OWNER = "*"  # owner of a call that is older than call ownership
SECRET_MARKER = "$secret"  # noqa: S105  the name of a mark, not a secret
QUESTION_TOOL = "request_human_input"  # the tool by which an agent asks people a question


@dataclass(frozen=True, kw_only=True)
class Caller:
    """What a key proves about the program that proposes a call. Everything else the call says of itself is a claim.

    The call belongs to `owner`; calls of any of `owners` are this program's to read, start and finish. It is judged as
    each of `agents`. `requester` is the person the key is for; `requester_is_proven`: they are known, or known to
    be nobody. `setting` is that of the interface. `spec_sha256` is of the program's own tool definition, where the
    server knows the tool and the server's definition counts.
    """

    owner: str
    owners: frozenset[str]
    agents: tuple[str, ...]
    credential: str = ""
    requester: str = ""
    teams: tuple[str, ...] = ()
    requester_is_proven: bool = False
    setting: str = "queue"
    spec_sha256: str = ""
    root: str = ""  # the first key of the chain of rotations


class PreCheck(NamedTuple):
    """Reasons to deny a call, or to ask about it, that do not come from the rules.

    `deny_reason` says why it is denied without evaluating them, `ask_reason` why people are asked even if rules and
    grants allow it; `declared_effect` is then the effect that the program declares for the tool.
    """

    deny_reason: str = ""
    ask_reason: str = ""
    declared_effect: str = ""


NO_PRE_CHECK = PreCheck()


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A proposed call: `args` are canonical bytes; `(workspace, run_id, call_id)` identifies it permanently.

    `switch` is the agent's own setting for asking about this tool; it weakens no rule. Without a `caller` the program
    has the database itself, so everything it says is trusted.
    """

    tool: str
    args: bytes
    run_id: str
    call_id: str
    workspace: str = DEFAULT_WORKSPACE
    agent: str = ""
    agent_path: tuple[str, ...] = ()
    thread_id: str = ""
    requester: str = ""
    teams: tuple[str, ...] = ()
    priority: str = ""
    setting: str = "queue"
    switch: str = ""
    expires_in: int | None = None
    agent_says: str = ""
    decisions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()  # other names of the requester: the e-mail address of their account
    caller: Caller | None = None
    pre_check: PreCheck = NO_PRE_CHECK
    condition_budgets: dict[bytes, ConditionBudget] = field(
        default_factory=dict, compare=False, repr=False
    )  # by `args`; copies share it

    @cached_property
    def parsed_args(self) -> Args:
        """The arguments as they will run: parsed from the bytes, not taken from the caller's object."""
        return cast(Args, read_canonical(self.args))

    @property
    def key(self) -> str:
        """The id of the agent's key that the call came with; empty for a program with the database."""
        return "" if self.caller is None else self.caller.credential

    def with_call_id(self, call_id: str) -> ToolCall:
        return fast_replace(self, call_id=call_id)

    @property
    def path(self) -> tuple[str, ...]:
        """The agents from the outermost to the calling one."""
        return self.agent_path or ((self.agent,) if self.agent else ())


def propose(tool: str, args: object, run_id: str, call_id: str, **more: object) -> ToolCall:
    """Make a ToolCall from a program's objects, the only way to do so: everything is checked and bounded here."""
    if type(args) is not dict and not isinstance(args, Mapping):
        raise InvalidRequest(f"The arguments of a call are an object, not {type(args).__name__}.")
    _check_shown_name("tool", tool, 1)
    _check_name("run_id", run_id, 1)
    _check_name("call_id", call_id, 1)
    defaults = map(CALL_DEFAULTS.__getitem__, more)
    for label in compress(more, map(is_not, more.values(), defaults)):  # most of them are not given
        if label not in SERVER_FIELDS:
            _check(label, more[label])
    data = canonical_args(args)
    return fast_construct(ToolCall, tool=tool, args=data, run_id=run_id, call_id=call_id, condition_budgets={}, **more)  # type: ignore[arg-type]  # checked


class _CallDefaults(dict[str, object]):
    def __missing__(self, label: str) -> object:
        """A value that equals no argument, for a name that is no field of a call."""
        return MISSING


CALL_DEFAULTS = _CallDefaults({field.name: field.default for field in fields(ToolCall)})
SERVER_FIELDS = frozenset(
    {"decisions", "aliases", "caller", "pre_check"}
)  # set by the server, never taken from a program as they are
CHOICES: Mapping[str, tuple[str, ...]] = {
    "priority": ("", *PRIORITIES),
    "setting": SETTINGS,
    "switch": SWITCHES,
}


def _check(label: str, value: object) -> None:
    match label:
        case "workspace":
            _check_name(label, value, 1)
        case "thread_id":
            _check_name(label, value, 0)
        case "agent" | "requester":
            _check_shown_name(label, value, 0)
        case "priority" | "setting" | "switch":
            _check_choice(label, value, CHOICES[label])
        case "agent_path" | "teams":
            _check_names(label, value)
        case "agent_says":
            _check_words(label, value)
        case "expires_in":
            _check_window(label, value)
        case _:
            raise TypeError(f"A call has no {label}.")


def _check_window(label: str, value: object) -> None:
    if value is not None and (type(value) is not int or value < 0):
        raise InvalidRequest(f"{label} is a whole number of milliseconds, not below 0.")


def _check_choice(label: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidRequest(f"{label} is {value!r}; it is one of {', '.join(filter(None, choices))}.")


def _check_name(label: str, name: object, least: int) -> None:
    if not isinstance(name, str) or not least <= len(name) <= MAX_NAME or not name.isprintable():
        raise InvalidRequest(f"{label} is {least} to {MAX_NAME} characters that can be seen.")


def _check_shown_name(label: str, name: object, least: int) -> None:
    """Check a name, ignoring invisible characters, so that the policy can refuse such a name on record."""
    if not isinstance(name, str) or name.isascii():  # ASCII has no invisible characters of this kind
        _check_name(label, name, least)
        return
    visible = "".join(ch for ch in name if category(ch) != "Cf")
    _check_name(label, visible, least)
    if len(name) > MAX_NAME:
        raise InvalidRequest(f"{label} is {least} to {MAX_NAME} characters that can be seen.")


def _check_names(label: str, names: object) -> None:
    if not isinstance(names, tuple) or len(names) > MAX_NAMES:
        raise InvalidRequest(f"{label} is a tuple of at most {MAX_NAMES} names.")
    for name in names:
        _check_shown_name(label, name, 1)


def _check_words(label: str, words: object) -> None:
    if not isinstance(words, str) or len(words) > MAX_TEXT_LENGTH:
        raise InvalidRequest(f"{label} is a text of at most {MAX_TEXT_LENGTH:,} characters.")
    canonical(words)  # NUL and lone surrogates cannot be stored


@dataclass(frozen=True)
class ToolSpec:
    """A tool's definition; `effect` is "" if unregistered, `secret` holds JSON pointers, `*` for every list item."""

    name: str
    effect: str = ""
    schema: Mapping[str, object] | None = None
    _: KW_ONLY
    describe: str | Callable[[Args], str] = ""
    preview: Callable[[Args], object] | None = None
    secret: tuple[str, ...] = ()
    idempotent: bool = False
    confirm: str = ""
    decisions: tuple[str, ...] = ()
    declared: bool = False

    def __post_init__(self) -> None:
        _check_shown_name("tool", self.name, 1)
        _check_choice("effect", self.effect, ("", *EFFECTS))
        _check_choice("confirm", self.confirm, ("", "chat"))

    @cached_property
    def definition(self) -> bytes:
        """The canonical definition that a reviewer relied on; a changed definition needs a new approval."""
        return canonical(
            {
                "name": self.name,
                "effect": self.effect,
                "schema": self.schema,
                "describe": self.describe if isinstance(self.describe, str) else "",
                "secret": self.secret,
                "idempotent": self.idempotent,
                "confirm": self.confirm,
                "decisions": self.decisions,
                "declared": self.declared,
            }
        )

    @cached_property
    def sha256(self) -> str:
        return digest(self.definition)

    @cached_property
    def known_arguments(self) -> frozenset[str] | None:
        """The names that the schema allows, or None where it allows any."""
        schema = self.schema or {}
        properties = schema.get("properties")
        if schema.get("additionalProperties") is not False or not isinstance(properties, Mapping):
            return None
        return frozenset(properties)

    def sentence(self, shown: Args) -> str:
        """One line for people, made from the redacted arguments; never fails."""
        return self.described(shown) or arguments_sentence(tool_title(self.name), shown)

    def described(self, shown: Args) -> str:
        """The sentence in the tool's own words; empty if it has none."""
        try:
            if isinstance(self.describe, str):
                words = self.describe.format(**_quotable(self.describe, self._without_secrets(shown)))
            else:
                words = str(self.describe(shown) or "")
        except Exception:  # noqa: BLE001  a describe that trips must not stop the question
            words = ""
        return words[:MAX_TEXT_LENGTH]

    def _without_secrets(self, shown: Args) -> Args:
        """Redacted arguments with a word in place of fingerprints, which say nothing inside a sentence."""
        if not self.secret:
            return shown
        names = {pointer.removeprefix("/") for pointer in self.secret} & shown.keys()
        return {**shown, **{name: HIDDEN for name in names if shown[name] is not None}} if names else shown


class _QuotableText(str):
    """A text that `{name!r}` puts in quotation marks and leaves as it is: a card escapes it, and only once.

    Of two sorts of quotation marks in it, the outer one is doubled, as in sentences that list arguments.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        mark = '"' if "'" in self and '"' not in self else "'"
        return f"{mark}{self.replace(mark, mark * 2)}{mark}"


def _quotable(template: str, args: Args) -> Args:
    if "!r" not in template:
        return args
    return {name: _QuotableText(value) if type(value) is str else value for name, value in args.items()}


QUESTION_SPEC = ToolSpec(QUESTION_TOOL, "read", decisions=("respond",), describe="{question}")


def parse_spec(definition: bytes) -> ToolSpec:
    """Parse a `definition`, for a process that never loaded the tool's code."""
    fields = cast(dict[str, object], read_canonical(definition))
    lists = {name: tuple(cast(list[str], fields[name])) for name in ("secret", "decisions")}
    return ToolSpec(**{**fields, **lists})  # type: ignore[arg-type]


class RedactedArgs(NamedTuple):
    """Arguments as people see them: secret values are replaced by keyed fingerprints."""

    data: bytes
    value: Args
    sha256: str
    secrets: frozenset[str] = frozenset()


def redacted_sha256(args: bytes, spec: ToolSpec, key: bytes) -> str:
    """The digest that `redact` gives."""
    return redact(args, spec, key).sha256 if spec.secret else digest(args)


def redact(args: bytes, spec: ToolSpec, key: bytes) -> RedactedArgs:
    value = cast(Args, read_canonical(args))
    if not spec.secret:
        return RedactedArgs(args, value, digest(args))
    found: set[str] = set()
    patterns = [_pointer_parts(pointer) for pointer in spec.secret]
    hidden = cast(Args, _replace(value, patterns, lambda pointer, inner: _hide(pointer, inner, key, found)))
    data = canonical(hidden)
    return RedactedArgs(data, hidden, digest(data), frozenset(found))


def restore(edited: Args, stored: bytes, spec: ToolSpec, key: bytes) -> tuple[Args, tuple[Problem, ...]]:
    """Restore stored secrets where an edit returned their fingerprint; unknown fingerprints are problems."""
    secrets = _secrets_by_fingerprint(cast(Args, read_canonical(stored)), spec, key)
    problems: list[Problem] = []

    def put_back(pointer: str, value: object) -> object:
        mark = value.get(SECRET_MARKER) if isinstance(value, Mapping) and len(value) == 1 else None
        if not isinstance(mark, str):
            return value
        if mark not in secrets:
            problems.append(Problem(pointer, "This fingerprint belongs to no stored secret."))
        return secrets.get(mark)

    patterns = [_pointer_parts(pointer) for pointer in spec.secret]
    return cast(Args, _replace(edited, patterns, put_back)), tuple(problems)


def fingerprint(value: object, key: bytes) -> str:
    return hmac.new(key, canonical(value), "sha256").hexdigest()[:32]


class Subject(NamedTuple):
    """What an approval is about; immutable, except that erasure removes the nonce."""

    workspace: str
    run_id: str
    call_id: str
    tool: str
    effect: str
    agent: str
    agent_path: tuple[str, ...]
    thread_id: str
    requester: str
    priority: str
    idempotent: bool
    spec_sha256: str
    nonce: str
    proposed: str
    owner: str = ""
    known: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The agents from the outermost to the calling one."""
        return self.agent_path or ((self.agent,) if self.agent else ())

    def is_same_call(self, call: ToolCall) -> bool:
        """Whether a call that comes back under this id is the proposed one, regardless of edits since.

        Where both name a path of agents it has to be the same: sub-agents share a run, but no approvals. After erasure
        there are no arguments left to compare, and nothing that could run.
        """
        if self.tool != call.tool or (self.agent_path and call.agent_path and self.agent_path != call.agent_path):
            return False
        if call.caller is not None and not self.belongs_to(call.caller):
            return False
        return not self.nonce or self.proposed == proposed_digest(call, self.nonce)

    def belongs_to(self, caller: Caller) -> bool:
        return self.owner == ANY_OWNER or self.owner in caller.owners

    def binding(self, args_sha256: str, terms_sha256: str, secret_args: bytes | None = None) -> str:
        """The digest that ties an approval to everything it covers.

        `secret_args` are the bytes that run if people saw redacted ones. The nonce keeps the digest from being guessed
        after erasure.
        """
        parts = (self.nonce, self.workspace, self.run_id, self.call_id, self.tool, self.spec_sha256)
        unseen = "" if secret_args is None else digest(self.nonce.encode() + secret_args)
        return digest("\x1f".join((*parts, terms_sha256, args_sha256, unseen)).encode())  # no name holds that character


def make_subject(call: ToolCall, spec: ToolSpec, priority: str, nonce: str, effects: tuple[str, ...] = ()) -> Subject:
    """Make a Subject; `effects` are all possible effects of the tool, where its declared effect is not certain."""
    return Subject(
        call.workspace,
        call.run_id,
        call.call_id,
        call.tool,
        _stricter_effect(_shown_effect(spec.effect, effects), call.pre_check.declared_effect),
        call.agent,
        call.agent_path,
        call.thread_id,
        call.requester,
        priority,
        spec.idempotent and not spec.declared,  # an unverified claim of idempotency gets one start
        spec.sha256,
        nonce,
        proposed_digest(call, nonce),
        *_owner_fields(call.caller),
    )


def _shown_effect(claimed: str, effects: tuple[str, ...]) -> str:
    """The effect to show: an untrusted claim of "read" is shown as unknown, not as harmless."""
    return "" if claimed == "read" and len(effects) > 1 else claimed


def _stricter_effect(known: str, doubted: str) -> str:
    """The stricter of the known and the declared effect, which people see; rules use the known one."""
    return max(known, doubted, key=lambda effect: EFFECTS.index(effect) if effect else -1) if doubted else known


def _owner_fields(caller: Caller | None) -> tuple[str, str]:
    """The owner and the verified facts of the caller, for judging the call again; empty for a local program."""
    return ("", "") if caller is None else (caller.owner, plain_json(caller_json(caller)))


def caller_json(caller: Caller) -> dict[str, object]:
    return {
        "agents": caller.agents,
        "requester": caller.requester,
        "teams": caller.teams,
        "vouched": caller.requester_is_proven,
        "credential": caller.credential,
        "root": caller.root,
        "setting": caller.setting,
        **({"spec_sha256": caller.spec_sha256} if caller.spec_sha256 else {}),
    }


def stored_caller(subject: Subject) -> Caller | None:
    """The verified facts of a stored call's program; None for one with the database itself, and for older calls."""
    return parse_caller(subject.owner, json.loads(subject.known)) if subject.known else None


def parse_caller(owner: str, known: Mapping[str, Any]) -> Caller:
    """The inverse of `caller_json`."""
    fields = {**known, "agents": tuple(known["agents"]), "teams": tuple(known["teams"])}
    is_proven = fields.pop("vouched", False)
    return Caller(owner=owner, owners=frozenset({owner}), requester_is_proven=is_proven, **fields)


def agent_actor(call: ToolCall) -> str:
    """The ledger's name for the calling agent."""
    return f"{AGENT_ACTOR_PREFIX}{call.agent}" if call.agent else AGENT_ACTOR_PREFIX[:-1]


def parse_agent_actor(actor: str) -> str:
    """The inverse of `agent_actor`: the agent's name, "" for a call without one."""
    return actor[len(AGENT_ACTOR_PREFIX) :] if actor.startswith(AGENT_ACTOR_PREFIX) else ""


def proposed_digest(call: ToolCall, nonce: str) -> str:
    """The digest of the proposed arguments, salted because they may hold secrets."""
    return digest(nonce.encode() + call.args)


def secret_texts(args: bytes, spec: ToolSpec) -> list[str]:
    """The secret values that are texts, longest first, so that masking leaves no part of one visible."""
    found: list[str] = []

    def note(_: str, value: object) -> None:
        found.extend([value] if isinstance(value, str) and value else [])

    _replace(read_canonical(args), [_pointer_parts(pointer) for pointer in spec.secret], note)
    return sorted(found, key=len, reverse=True)


def _pointer_parts(pointer: str) -> tuple[str, ...]:
    """Split a JSON pointer, `/a/b` or plain `a`; `~1` and `~0` as in RFC 6901."""
    parts = pointer.removeprefix("/").split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _replace(
    value: object, patterns: list[tuple[str, ...]], change: Callable[[str, object], object], pointer: str = ""
) -> object:
    """A copy of the value with `change` applied to what the patterns point at."""
    if () in patterns:
        return change(pointer, value)
    if not patterns:
        return value
    match value:
        case Mapping():
            items = {}
            for name, inner in value.items():
                step = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
                items[name] = _replace(inner, _inner_patterns(patterns, name), change, step)
            return items
        case list():
            return [
                _replace(v, _inner_patterns(patterns, str(i)), change, f"{pointer}/{i}") for i, v in enumerate(value)
            ]
        case _:
            return value


def _inner_patterns(patterns: list[tuple[str, ...]], name: str) -> list[tuple[str, ...]]:
    return [pattern[1:] for pattern in patterns if pattern[0] in (name, "*")]


def _hide(pointer: str, value: object, key: bytes, found: set[str]) -> object:
    if value is None:
        return None
    found.add(pointer)
    return {SECRET_MARKER: fingerprint(value, key)}


def _secrets_by_fingerprint(stored: Args, spec: ToolSpec, key: bytes) -> dict[str, object]:
    secrets: dict[str, object] = {}

    def note(_: str, value: object) -> None:
        secrets[fingerprint(value, key)] = value

    _replace(stored, [_pointer_parts(pointer) for pointer in spec.secret], note)
    return secrets
