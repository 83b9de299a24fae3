import { Anchor, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call, type Shapes } from "../../../api/client";
import { isAdmin, type Myself } from "../../../api/me";
import { Loading, Problem } from "../../../components/States";
import { Ago } from "../../../components/Time";
import { Confirm } from "../Confirm";
import { dateTime, useSending } from "../data";
import css from "../Settings.module.css";
import { covers, limits } from "./grantWords";

type Details = Shapes["GrantDetails"];

/** One grant: what it covers, by whose word, and every call that it let through lately. */
export function GrantDetails({ id, me }: { id: string; me: Myself }) {
  const grant = useQuery({
    queryKey: ["grants", "one", id],
    queryFn: ({ signal }) => call("get", "/api/grants/{grant_id}", { path: { grant_id: id }, signal }),
  });
  if (grant.isPending) return <Loading />;
  if (!grant.data) return <Problem error={grant.error} again={() => void grant.refetch()} />;
  const its = grant.data;
  const may = its.created_by === me.name ? me.role !== "viewer" : isAdmin(me);
  return (
    <Stack gap="md">
      <Facts grant={its} />
      <div>
        <Title order={3} size="h5">
          Let through
        </Title>
        <Calls calls={its.calls} />
      </div>
      {its.state === "active" && may && <Revoke id={id} />}
      {its.state === "active" && !may && (
        <Text size="sm">Whoever made a grant can revoke it, and admins can.</Text>
      )}
    </Stack>
  );
}

function Facts({ grant }: { grant: Details }) {
  const facts: [string, string][] = [
    ["Tool", grant.tool],
    ["Covers", covers(grant)],
    ["State", grant.state],
    ["Used", limits(grant).join(" · ")],
    ["Until", dateTime(grant.expires_at)],
    ["Made by", `${grant.created_by}, ${dateTime(grant.created_at)}`],
    ["Why", grant.reason],
  ];
  if (grant.revoked_at)
    facts.push([
      "Revoked",
      `${grant.revoked_by ?? ""}, ${dateTime(grant.revoked_at)}: ${grant.revoked_reason || "no reason given"}`,
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
  if (!calls.length) return <Text size="sm">Nothing yet.</Text>;
  return (
    <ul className={css.calls}>
      {calls.map((use) => (
        <li key={use.approval_id}>
          <Anchor component={Link} href={`/a/${use.approval_id}`} underline="always">
            {use.sentence}
          </Anchor>
          <Text size="sm" c="dimmed" component="div">
            {use.status}, <Ago at={use.at} />
            {use.amount !== null && `, ${use.amount}`}
          </Text>
        </li>
      ))}
    </ul>
  );
}

function Revoke({ id }: { id: string }) {
  const [reason, setReason] = useState("");
  const revoke = useSending(
    (_: void) => call("delete", "/api/grants/{grant_id}", { path: { grant_id: id }, query: { reason } }),
    ["grants"],
  );
  return (
    <Confirm
      verb="Revoke the grant"
      consequence="People are asked again, from the next call on. What it let through stays."
      sending={revoke.isPending}
      error={revoke.error}
      onYes={() => revoke.mutate()}
    >
      <TextInput
        label="Reason (kept in the record)"
        value={reason}
        maxLength={2000}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Confirm>
  );
}
