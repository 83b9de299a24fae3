import { Anchor, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { callApi, type Schemas } from "../../../api/client";
import { isAdmin, type CurrentUser } from "../../../api/currentUser";
import { Confirm } from "../../../components/Confirm";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage, Loading } from "../../../components/States";
import { formatDateTime, formatSpan, TimeAgo } from "../../../components/TimeAgo";
import type { GrantInfo } from "../data";
import css from "../Settings.module.css";
import * as messages from "./messages";

type Details = Schemas["GrantDetails"];

/** One grant: its scope, its creator, and its recent calls. */
export function GrantDetails({ id, me }: { id: string; me: CurrentUser }) {
  const grant = useQuery({
    queryKey: ["grants", "one", id],
    queryFn: ({ signal }) => callApi("get", "/api/grants/{grant_id}", { path: { grant_id: id }, signal }),
  });
  if (grant.isPending) return <Loading />;
  if (!grant.data) return <ErrorMessage error={grant.error} onRetry={() => void grant.refetch()} />;
  const details = grant.data;
  const mayRevoke = details.created_by === me.name ? me.role !== "viewer" : isAdmin(me);
  return (
    <Stack gap="md">
      <Facts grant={details} />
      <div>
        <Title order={3} size="h5">
          {messages.allowedCalls}
        </Title>
        <Calls calls={details.calls} />
      </div>
      {details.state === "active" && mayRevoke && <Revoke id={id} />}
      {details.state === "active" && !mayRevoke && <Text size="sm">{messages.onlyCreatorRevokes}</Text>}
    </Stack>
  );
}

function Facts({ grant }: { grant: Details }) {
  const facts: [string, string][] = [
    [messages.tool, grant.tool],
    [messages.covers, describeGrant(grant)],
    [messages.state, grant.state],
    [messages.used, describeLimits(grant).join(" · ")],
    [messages.until, formatDateTime(grant.expires_at)],
    [messages.createdBy, `${grant.created_by}, ${formatDateTime(grant.created_at)}`],
    [messages.reason, grant.reason],
  ];
  if (grant.revoked_at)
    facts.push([
      messages.revokedHeading,
      messages.revokedBy(grant.revoked_by ?? "", formatDateTime(grant.revoked_at), grant.revoked_reason),
    ]);
  return (
    <dl className={css.facts}>
      {facts.map(([name, value]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Calls({ calls }: { calls: Details["calls"] }) {
  if (!calls.length) return <Text size="sm">{messages.noCallsYet}</Text>;
  return (
    <ul className={css.calls}>
      {calls.map((use) => (
        <li key={use.approval_id}>
          <Anchor component={Link} href={`/a/${use.approval_id}`} underline="always">
            {use.sentence}
          </Anchor>
          <Text size="sm" c="dimmed" component="div">
            {use.status}, <TimeAgo at={use.at} />
            {use.amount !== null && `, ${use.amount}`}
          </Text>
        </li>
      ))}
    </ul>
  );
}

function Revoke({ id }: { id: string }) {
  const [reason, setReason] = useState("");
  const revoke = useSendMutation(
    (_: void) => callApi("delete", "/api/grants/{grant_id}", { path: { grant_id: id }, query: { reason } }),
    ["grants"],
  );
  return (
    <Confirm
      label={messages.revokeGrant}
      consequence={messages.callsNeedApprovalAgain}
      sending={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
    >
      <TextInput
        label={messages.reasonRecordedInLedger}
        value={reason}
        maxLength={2000}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Confirm>
  );
}

/** "office may call it if args.to == "bob"" */
export function describeGrant(grant: Pick<GrantInfo, "agent" | "when">): string {
  const who = grant.agent === "*" ? messages.everyAgent : grant.agent;
  return grant.when ? messages.mayCallItIf(who, grant.when) : messages.mayCallItWithAnyArguments(who);
}

/** Used and total limits, and the expiry. */
export function describeLimits(grant: GrantInfo, now = Date.now()): string[] {
  const uses =
    grant.max_uses === null ? messages.useCount(grant.uses) : messages.usesOf(grant.uses, grant.max_uses);
  const budget =
    grant.budget === null ? [] : [messages.budgetUsed(grant.spent ?? "0", grant.budget, grant.budget_of)];
  return [uses, ...budget, expiryLabel(grant, now)];
}

function expiryLabel({ state, expires_at }: GrantInfo, now: number): string {
  const left = (Date.parse(expires_at) - now) / 1_000;
  if (state === "revoked") return messages.revokedState;
  if (left <= 0) return messages.endedAgo(formatSpan(-left));
  return state === "used up" ? messages.usedUp : messages.endsIn(formatSpan(left));
}
