import { Anchor, Button, Group, NativeSelect, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { ApprovalSnapshot } from "../api/approvals";
import { callApi } from "../api/client";
import { mayDecide, useMe } from "../api/currentUser";
import css from "./ApprovalCard.module.css";
import type { ApprovalCardState } from "./useApprovalCard";

/** Actions besides deciding. */
export default function MoreActions({ state }: { state: ApprovalCardState }) {
  const me = useMe().data;
  const { approval } = state;
  const isPending = approval.status === "pending";
  return (
    <div className={css.answers}>
      {mayDecide(me) && isPending && (
        <MessageForm state={state} action="ask" field="question" label="Ask the agent" button="Ask" />
      )}
      {mayDecide(me) && (
        <MessageForm state={state} action="comment" field="text" label="Note for other people" button="Add" />
      )}
      {isPending && approval.may_decide.length > 0 && <DelegateForm state={state} />}
      <Group gap="xs">
        {isPending && mayDecide(me) && <ClaimButton state={state} me={me?.name ?? ""} />}
        <CopyLink id={approval.id} />
      </Group>
      <Group gap="md">
        <Anchor size="sm" component={Link} href={`/history?id=${approval.id}`}>
          Timeline
        </Anchor>
        {mayDecide(me) && (
          <Anchor size="sm" component={Link} href={newGrantUrl(approval)}>
            Create a grant for such calls
          </Anchor>
        )}
      </Group>
    </div>
  );
}

function newGrantUrl({ tool, agent }: ApprovalSnapshot): string {
  return `/settings/grants?new&${new URLSearchParams({ tool, agent })}`;
}

function ClaimButton({ state, me }: { state: ApprovalCardState; me: string }) {
  const action = state.approval.claimed_by === me ? "release" : "claim";
  return (
    <Button
      variant="default"
      className={css.wide}
      loading={state.sending === action}
      title="Others see that you claimed it. They can still decide."
      onClick={() => state.perform(action)}
    >
      {action === "claim" ? "Claim" : "Release"}
    </Button>
  );
}

/** Without HTTPS a page cannot write to the clipboard; it shows the link instead. */
function CopyLink({ id }: { id: string }) {
  const [message, setMessage] = useState("");
  const link = `${location.origin}/a/${id}`;
  const copy = () =>
    navigator.clipboard
      ? navigator.clipboard.writeText(link).then(
          () => setMessage("Copied."),
          () => setMessage(link),
        )
      : setMessage(link);
  return (
    <>
      <Button variant="default" className={css.wide} onClick={() => void copy()}>
        Copy link
      </Button>
      {message && (
        <Text size="sm" role="status">
          {message}
        </Text>
      )}
    </>
  );
}

/** Delegates the user's vote to another person or a team. */
function DelegateForm({ state }: { state: ApprovalCardState }) {
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
    state.perform("delegate", { [kind === "team" ? "teams" : "users"]: [name.join(" ")] }, () => setTo(""));
  };
  return (
    <form
      className={css.line}
      onSubmit={(event) => {
        event.preventDefault();
        if (to && !state.sending) send();
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
        loading={state.sending === "delegate"}
      >
        Delegate
      </Button>
    </form>
  );
}

interface MessageFormProps {
  state: ApprovalCardState;
  action: "ask" | "comment";
  field: "question" | "text";
  label: string;
  button: string;
}

/** A one-line message about the call; it is kept until it was sent. */
function MessageForm({ state, action, field, label, button }: MessageFormProps) {
  const [text, setText] = useState("");
  const trimmed = text.trim();
  return (
    <form
      className={css.line}
      onSubmit={(event) => {
        event.preventDefault();
        if (trimmed && !state.sending) state.perform(action, { [field]: trimmed }, () => setText(""));
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
        disabled={!trimmed}
        loading={state.sending === action}
      >
        {button}
      </Button>
    </form>
  );
}
