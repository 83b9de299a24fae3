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
          {" "}
          Allowed calls{" "}
        </Title>
        <Calls calls={details.calls} />
      </div>
      {details.state === "active" && mayRevoke && <Revoke id={id} />}
      {details.state === "active" && !mayRevoke && (
        <Text size="sm">Only its creator and admins can revoke a grant.</Text>
      )}
    </Stack>
  );
}

function Facts({ grant }: { grant: Details }) {
  const facts: [string, string][] = [
    ["Tool", grant.tool],
    ["Covers", describeGrant(grant)],
    ["State", grant.state],
    ["Used", describeLimits(grant).join(" · ")],
    ["Until", formatDateTime(grant.expires_at)],
    ["Created by", `${grant.created_by}, ${formatDateTime(grant.created_at)}`],
    ["Reason", grant.reason],
  ];
  if (grant.revoked_at)
    facts.push([
      "Revoked",
      `${grant.revoked_by ?? ""}, ${formatDateTime(grant.revoked_at)}: ${grant.revoked_reason || "no reason given"}`,
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
  if (!calls.length) return <Text size="sm">No calls yet.</Text>;
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
      label="Revoke the grant"
      consequence="Calls need approval again, starting with the next one. Calls that were already allowed stay allowed."
      sending={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
    >
      <TextInput
        label="Reason (recorded in the ledger)"
        value={reason}
        maxLength={2000}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Confirm>
  );
}

/** "office may call it if args.to == "bob"" */
export function describeGrant(grant: Pick<GrantInfo, "agent" | "when">): string {
  const who = grant.agent === "*" ? "Every agent" : grant.agent;
  return grant.when ? `${who} may call it if ${grant.when}` : `${who} may call it with any arguments`;
}

/** Used and total limits, and the expiry. */
export function describeLimits(grant: GrantInfo, now = Date.now()): string[] {
  const uses = grant.max_uses === null ? `${grant.uses} uses` : `${grant.uses} of ${grant.max_uses} uses`;
  const budget =
    grant.budget === null ? [] : [`${grant.spent ?? "0"} of ${grant.budget} of ${grant.budget_of}`];
  return [uses, ...budget, expiryLabel(grant, now)];
}

function expiryLabel({ state, expires_at }: GrantInfo, now: number): string {
  const left = (Date.parse(expires_at) - now) / 1_000;
  if (state === "revoked") return "revoked";
  if (left <= 0) return `ended ${formatSpan(-left)} ago`;
  return state === "used up" ? "used up" : `ends in ${formatSpan(left)}`;
}
