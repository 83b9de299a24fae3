import { Anchor, Button, Group, NativeSelect, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { ApprovalSnapshot } from "../api/approvals";
import { callApi } from "../api/client";
import { mayDecide, useMe } from "../api/currentUser";
import css from "./ApprovalCard.module.css";
import type { ApprovalCardState } from "./useApprovalCard";

/** What one can do besides answering. */
export default function MoreActions({ held }: { held: ApprovalCardState }) {
  const me = useMe().data;
  const { now } = held;
  const isPending = now.status === "pending";
  return (
    <div className={css.answers}>
      {mayDecide(me) && isPending && (
        <MessageForm held={held} verb="ask" field="question" label="Ask the agent" button="Ask" />
      )}
      {mayDecide(me) && (
        <MessageForm held={held} verb="comment" field="text" label="Note for other people" button="Add" />
      )}
      {isPending && now.may_decide.length > 0 && <DelegateForm held={held} />}
      <Group gap="xs">
        {isPending && mayDecide(me) && <Claim held={held} me={me?.name ?? ""} />}
        <CopyLink id={now.id} />
      </Group>
      <Group gap="md">
        <Anchor size="sm" component={Link} href={`/history?id=${now.id}`}>
          Timeline
        </Anchor>
        {mayDecide(me) && (
          <Anchor size="sm" component={Link} href={grantFor(now)}>
            Create a grant for such calls
          </Anchor>
        )}
      </Group>
    </div>
  );
}

function grantFor({ tool, agent }: ApprovalSnapshot): string {
  return `/settings/grants?new&${new URLSearchParams({ tool, agent })}`;
}

function Claim({ held, me }: { held: ApprovalCardState; me: string }) {
  const verb = held.now.claimed_by === me ? "release" : "claim";
  return (
    <Button
      variant="default"
      className={css.wide}
      loading={held.sending === verb}
      title="Others see that you claimed it. They can still decide."
      onClick={() => held.move(verb)}
    >
      {verb === "claim" ? "Claim" : "Release"}
    </Button>
  );
}

/** Without HTTPS a page may not write to the clipboard: then the link is shown. */
function CopyLink({ id }: { id: string }) {
  const [told, setTold] = useState("");
  const link = `${location.origin}/a/${id}`;
  const copy = () =>
    navigator.clipboard
      ? navigator.clipboard.writeText(link).then(
          () => setTold("Copied."),
          () => setTold(link),
        )
      : setTold(link);
  return (
    <>
      <Button variant="default" className={css.wide} onClick={() => void copy()}>
        Copy link
      </Button>
      {told && (
        <Text size="sm" role="status">
          {told}
        </Text>
      )}
    </>
  );
}

/** Lets another person or a team decide in one's place: their vote counts in one's own seat. */
function DelegateForm({ held }: { held: ApprovalCardState }) {
  const [to, setTo] = useState("");
  const me = useMe().data;
  const users = useQuery({
    queryKey: ["users"],
    queryFn: ({ signal }) => callApi("get", "/api/users", { signal }),
  });
  const others = (users.data?.items ?? []).filter(({ name, role }) => name !== me?.name && role !== "viewer");
  const teams = [...new Set((users.data?.items ?? []).flatMap((user) => user.teams))].sort();
  const send = () => {
    const [kind, ...name] = to.split(" ");
    held.move("delegate", { [kind === "team" ? "teams" : "users"]: [name.join(" ")] }, () => setTo(""));
  };
  return (
    <form
      className={css.line}
      onSubmit={(event) => {
        event.preventDefault();
        if (to && !held.sending) send();
      }}
    >
      <NativeSelect
        className={css.grow}
        label="Delegate to"
        value={to}
        onChange={(event) => setTo(event.currentTarget.value)}
      >
        <option value="">Choose</option>
        {others.map(({ name }) => (
          <option key={name} value={`user ${name}`}>
            {name}
          </option>
        ))}
        {teams.map((name) => (
          <option key={name} value={`team ${name}`}>
            team {name}
          </option>
        ))}
      </NativeSelect>
      <Button
        type="submit"
        variant="default"
        className={css.wide}
        disabled={!to}
        loading={held.sending === "delegate"}
      >
        Delegate
      </Button>
    </form>
  );
}

interface LineProps {
  held: ApprovalCardState;
  verb: "ask" | "comment";
  field: "question" | "text";
  label: string;
  button: string;
}

/** One line that is sent about the call; it stays until it has arrived. */
function MessageForm({ held, verb, field, label, button }: LineProps) {
  const [text, setText] = useState("");
  const said = text.trim();
  return (
    <form
      className={css.line}
      onSubmit={(event) => {
        event.preventDefault();
        if (said && !held.sending) held.move(verb, { [field]: said }, () => setText(""));
      }}
    >
      <TextInput
        className={css.grow}
        label={label}
        maxLength={2_000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button
        type="submit"
        variant="default"
        className={css.wide}
        disabled={!said}
        loading={held.sending === verb}
      >
        {button}
      </Button>
    </form>
  );
}
