"""The policy: show it, put another in force, list versions; check, explain and rehearse a draft."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from interlock.config.yaml import read_yaml, to_plain
from interlock.core.canonical import parse_json
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import InvalidRequest, NotFound, TooManyRequests
from interlock.core.policy.claims import unbound_keys_warning
from interlock.core.ports import PolicyVersion
from interlock.policy.diff import defaults_fields, diff_policies
from interlock.policy.file import StalePolicy
from interlock.policy.rehearsal import run_rehearsal
from interlock.presenters.policy import difference_json, explanation_json, policy_version_json, rehearsal_json
from interlock.runtime.durations import parse_duration
from interlock.server.dependencies import (
    ADMINS,
    PrincipalDep,
    RequestDep,
    StateDep,
    check_if_match,
    documented_errors,
    etag,
    require_recent_sign_in,
    require_roles,
)
from interlock.server.explain import parse_explain_request
from interlock.server.http import HttpRequest, UnsupportedMediaType, encode_json, is_json, reject_misconfigured
from interlock.server.routes.rules import PolicyDiff, RuleInfo, policy_diff, rule_infos

router = APIRouter(tags=["policy"])

YAML_TYPE = "application/yaml"
YAML_TYPES = frozenset({b"application/yaml", b"application/x-yaml", b"text/yaml", b"text/x-yaml"})
MAX_CALLS = 100_000  # calls that one rehearsal reads
MAX_SECONDS = 20.0
POLICY_EXAMPLE = {"version": 1, "rules": [{"name": "reads are free", "effect": "read", "then": "allow"}]}
CALL_EXAMPLE = {"tool": "fund_transfer", "args": {"amount": 100, "recipient": "ann@example.com"}}
VersionNumber = Annotated[int | None, Query(ge=1, le=2**31)]


class PolicyVersionJson(BaseModel):
    version: int
    at: str
    author: str
    reason: str
    sha256: str


class StalePolicyFile(BaseModel):
    """The policy file that this server was started with is not in force; `command` would put it back.

    `judged_too` if the text of another file is in force: the server then judges by both, and the stricter verdict
    counts.
    """

    file: str
    message: str
    command: str
    judged_too: bool


class PolicyVersionList(BaseModel):
    items: list[PolicyVersionJson]
    next: str | None = None
    stale: StalePolicyFile | None = None


class PutPolicyResult(PolicyVersionJson):
    """`new` is false if this policy was already in force."""

    new: bool
    warnings: list[str]


class PolicyCheckResult(BaseModel):
    """Whether a policy would load; `problems` are its errors, each with its line.

    `details` and `defaults` describe it in words, and `diff` is the difference from the policy in force.
    """

    valid: bool
    rules: list[str]
    warnings: list[str]
    problems: list[str]
    sha256: str | None
    details: list[RuleInfo] = []
    defaults: dict[str, str] = {}
    diff: PolicyDiff | None = None


def require_admin_body(
    *kinds: str, example: object, by: Callable[[frozenset[str]], dict[str, Any]] = require_roles
) -> dict[str, Any]:
    """Decorator arguments of a route for admins, with a body of one of these content types."""
    extra = by(ADMINS)
    schemas = {"application/json": {"type": "object"}, YAML_TYPE: {}}  # an invalid policy is checked too
    content = {kind: {"schema": schemas[kind], "example": example} for kind in kinds}
    extra["openapi_extra"] |= {"requestBody": {"required": True, "content": content}}
    return extra


@router.get(
    "/api/policy",
    responses={200: {"content": {YAML_TYPE: {"schema": {"type": ["object", "null"]}}}}, **documented_errors(404)},
    response_model=dict[str, object],
    **require_roles(ADMINS),
)
async def show_policy(
    state: StateDep, principal: PrincipalDep, request: RequestDep, version: VersionNumber = None
) -> Response:
    """The policy in force, or an earlier version: as it was stored, or as JSON if that is accepted."""
    stored = await state.store.policy(principal.workspace)
    newest = stored.version if stored else 0
    if version is not None and not 1 <= version <= newest:
        where = "See Versions on the Policy page, or: interlock policy history"
        raise NotFound(f"There is no version {version} of the policy. {where}", version=version)
    if version is None or stored is None:
        return _negotiate_response(stored.body if stored else "", newest, request)
    versions = await state.store.policies(principal.workspace, newest - version + 1)
    return _negotiate_response(versions[-1].body, version, request)


@router.put(
    "/api/policy",
    responses=documented_errors(409, 415),
    **require_admin_body(YAML_TYPE, "application/json", example=POLICY_EXAMPLE, by=require_recent_sign_in),
)
async def put_policy(
    state: StateDep,
    principal: PrincipalDep,
    request: RequestDep,
    reason: Annotated[str, Query(max_length=MAX_COMMENT)] = "",
) -> PutPolicyResult:
    """Put a policy in force as a new version; an invalid one changes nothing. With If-Match, only if unchanged."""
    before = await state.store.policy(principal.workspace)
    number = before.version if before else 0
    seen = number if check_if_match(request.headers, etag(number)) else None
    with reject_misconfigured():
        loaded, version = await state.workspaces.put_policy(
            principal.workspace, _draft_text(request), principal.name, reason, seen, principal.reviewer().trace
        )
    fields: dict[str, Any] = policy_version_json(version)
    return PutPolicyResult(**fields, new=version.version != number, warnings=list(loaded.warnings))


@router.get("/api/policy/versions", responses=documented_errors(), **require_roles(ADMINS))
async def list_versions(
    state: StateDep, principal: PrincipalDep, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> PolicyVersionList:
    """All versions that were put in force, with time, author and reason, the newest first."""
    versions = await state.store.policies(principal.workspace, limit)
    stale = _stale_file((await state.workspaces.services(principal.workspace)).stale_policy)
    return PolicyVersionList(items=[_version(version) for version in versions], stale=stale)


@router.post(
    "/api/policy/check",
    responses=documented_errors(415),
    **require_admin_body(YAML_TYPE, "application/json", example=POLICY_EXAMPLE),
)
async def check_policy(state: StateDep, principal: PrincipalDep, request: RequestDep) -> PolicyCheckResult:
    """Check whether a policy loads, and return errors and warnings. Changes nothing."""
    try:
        with reject_misconfigured():
            loaded = await state.workspaces.draft(principal.workspace, _draft_text(request))
    except InvalidRequest as error:
        problems = error.message.splitlines()
        return PolicyCheckResult(valid=False, rules=[], warnings=[], problems=problems, sha256=None)
    in_force = (await state.workspaces.services(principal.workspace)).loaded_policy.policy
    loose = unbound_keys_warning(loaded.policy, await state.accounts.keys(principal.workspace), state.clock())
    return PolicyCheckResult(
        valid=True,
        rules=[rule.name for rule in loaded.policy.rules],
        warnings=[*loaded.warnings, *([loose] if loose else [])],
        problems=[],
        sha256=loaded.policy.sha256,
        details=rule_infos(loaded),
        defaults=defaults_fields(loaded.policy.defaults),
        diff=policy_diff(diff_policies(in_force, loaded.policy)),
    )


@router.post(
    "/api/policy/explain",
    responses=documented_errors(415),
    **require_admin_body("application/json", example=CALL_EXAMPLE),
)
async def explain_call(state: StateDep, principal: PrincipalDep, request: RequestDep) -> dict[str, object]:
    """Explain which rule a call matches, and why: `{"call": {"tool", "args", …}, "policy"?}`. Changes nothing.

    It is judged as a call with an agent key without bindings; `key` in it describes another key, and
    `"embedded": true` says that it comes from a program that opens the database itself. `judged_as` says which it was.
    """
    body, services = _json_object(request), await state.workspaces.services(principal.workspace)
    question = parse_explain_request(body.get("call", body), state, services)
    if "call" in body and "policy" in body:
        with reject_misconfigured("/policy"):
            loaded, origin = (
                await state.workspaces.draft(principal.workspace, _policy_text(body["policy"])),
                "the draft",
            )
    else:
        stored = await state.store.policy(principal.workspace)
        loaded, origin = services.loaded_policy, f"version {stored.version}" if stored else "the defaults"
    explained = await asyncio.to_thread(question.explain, loaded.policy, loaded.rule_lines)
    return explanation_json(explained, origin, loaded)


@router.post(
    "/api/policy/rehearse",
    responses=documented_errors(415, 429),
    **require_admin_body(YAML_TYPE, "application/json", example=POLICY_EXAMPLE),
)
async def rehearse_policy(
    state: StateDep,
    principal: PrincipalDep,
    request: RequestDep,
    since: str = "30d",
    limit: Annotated[int, Query(ge=0, le=1_000)] = 20,
) -> dict[str, object]:
    """Rehearse a draft on recorded calls, compared with the policy in force: at most 100,000 calls, or 20 seconds."""
    begin = state.clock() - parse_duration(since)
    with reject_misconfigured():
        new = (await state.workspaces.draft(principal.workspace, _draft_text(request))).policy
    old = (await state.workspaces.services(principal.workspace)).loaded_policy.policy
    if state.rehearsal_lock.locked():
        raise TooManyRequests("Another rehearsal is running. Try again in a moment.", retry_after=5)
    loop = asyncio.get_running_loop()
    end = loop.time() + MAX_SECONDS
    async with state.rehearsal_lock:
        rehearsed = await run_rehearsal(
            state.store,
            principal.workspace,
            (old, new),
            begin,
            limit,
            lambda done, _: done < MAX_CALLS and loop.time() < end,
        )
    return {
        **rehearsal_json(rehearsed, state.clock(), state.settings.storage.retention_text),
        "diff": difference_json(diff_policies(old, new)),
    }


def _stale_file(found: StalePolicy | None) -> StalePolicyFile | None:
    if found is None:
        return None
    return StalePolicyFile(
        file=found.configured.origin, message=found.message, command=found.command, judged_too=found.is_combined
    )


def _draft_text(request: HttpRequest) -> str:
    """The policy of a request: YAML, JSON, or in a JSON object under `policy`."""
    if is_json(request.headers):
        body = _json_object(request)
        return _policy_text(body["policy"]) if "policy" in body else request.body.decode()
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind not in YAML_TYPES:
        raise UnsupportedMediaType("A policy is YAML or JSON: send Content-Type: application/yaml or application/json.")
    try:
        return request.body.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("The policy is not UTF-8.") from None


def _json_object(request: HttpRequest) -> Mapping[str, object]:
    if not is_json(request.headers):
        raise UnsupportedMediaType("The body has to be JSON: send Content-Type: application/json.")
    body = parse_json(request.body)
    if not isinstance(body, dict):
        raise InvalidRequest("The body has to be a JSON object.")
    return cast(dict[str, object], body)


def _policy_text(policy: object) -> str:
    return policy if isinstance(policy, str) else encode_json(policy).decode()


def _negotiate_response(body: str, version: int, request: HttpRequest) -> Response:
    headers = {"etag": etag(version), "vary": "accept"}
    accepted = request.headers.get(b"accept", b"*/*")
    if b"json" not in accepted or b"yaml" in accepted:
        return Response(body, headers=headers, media_type=YAML_TYPE)
    document = read_yaml(body, lambda line, message: None)
    value = to_plain(document) if document is not None else None
    return Response(encode_json(value or {}), headers=headers, media_type="application/json")


def _version(version: PolicyVersion) -> PolicyVersionJson:
    fields: dict[str, Any] = policy_version_json(version)
    return PolicyVersionJson(**fields)
