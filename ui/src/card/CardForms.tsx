import { ActionIcon, NativeSelect, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { callApi } from "../api/client";
import { useMe } from "../api/currentUser";
import { IconClaim, IconDelegate, IconLink, IconSend } from "../components/icons";
import css from "./CardAside.module.css";
import * as messages from "./messages";
import type { ApprovalCardState } from "./useApprovalCard";

const ICON = { size: 16, stroke: 1.75, "aria-hidden": true } as const;

interface MessageFormProps {
  state: ApprovalCardState;
  action: "ask" | "comment";
  label: string;
  placeholder?: string;
  button: string;
}

const FIELDS = { ask: "question", comment: "text" } as const;
const DRAFTS = { ask: "question", comment: "note" } as const;

/** A one-line message about the call; it is kept until it was sent. */
export function MessageForm({ state, action, label, placeholder, button }: MessageFormProps) {
  const { drafts, draft, sending, perform } = state;
  const name = DRAFTS[action];
  const trimmed = drafts[name].trim();
  const send = () => perform(action, { [FIELDS[action]]: trimmed }, () => draft({ [name]: "" }));
  return (
    <LineForm
      name={action}
      label={label}
      button={button}
      icon={<IconSend {...ICON} />}
      isReady={trimmed !== ""}
      isSending={sending === action}
      isBusy={Boolean(sending)}
      onSend={send}
    >
      {(id) => (
        <TextInput
          id={id}
          placeholder={placeholder}
          maxLength={2_000}
          value={drafts[name]}
          onChange={(event) => draft({ [name]: event.currentTarget.value })}
        />
      )}
    </LineForm>
  );
}

/** Delegates the user's vote to another person or a team. */
export function DelegateForm({ state }: { state: ApprovalCardState }) {
  const [to, setTo] = useState("");
  const me = useMe().data;
  const users = useQuery({
    queryKey: ["users"],
    queryFn: ({ signal }) => callApi("get", "/api/users", { signal }),
  });
  const people = users.data?.items ?? [];
  const others = people.filter(({ name, role }) => name !== me?.name && role !== "viewer");
  const teams = [...new Set(people.flatMap((user) => user.teams))].sort();
  const send = () => {
    const [kind, ...name] = to.split(" ");
    state.perform("delegate", { [kind === "team" ? "teams" : "users"]: [name.join(" ")] }, () => setTo(""));
  };
  return (
    <LineForm
      name="delegate"
      label={messages.delegateTo}
      button={messages.delegate}
      icon={<IconDelegate {...ICON} />}
      isReady={to !== ""}
      isSending={state.sending === "delegate"}
      isBusy={Boolean(state.sending)}
      onSend={send}
    >
      {(id) => (
        <NativeSelect id={id} value={to} onChange={(event) => setTo(event.currentTarget.value)}>
          <option value="">{messages.choose}</option>
          {others.map(({ name }) => (
            <option key={name} value={`user ${name}`}>
              {name}
            </option>
          ))}
          {teams.map((name) => (
            <option key={name} value={`team ${name}`}>
              {messages.teamName(name)}
            </option>
          ))}
        </NativeSelect>
      )}
    </LineForm>
  );
}

interface LineFormProps {
  name: string;
  label: string;
  button: string;
  icon: ReactNode;
  isReady: boolean;
  isSending: boolean;
  isBusy: boolean;
  onSend: () => void;
  children: (id: string) => ReactNode;
}

/** One field with a button beside it. */
function LineForm({
  name,
  label,
  button,
  icon,
  isReady,
  isSending,
  isBusy,
  onSend,
  children,
}: LineFormProps) {
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady && !isBusy) onSend();
  };
  return (
    <form onSubmit={submit} data-form={name}>
      <label className={css.label} htmlFor={id}>
        {label}
      </label>
      <div className={css.line}>
        <div className={css.grow}>{children(id)}</div>
        <ActionIcon
          type="submit"
          variant="default"
          className={css.send}
          aria-label={button}
          title={button}
          disabled={!isReady}
          loading={isSending}
        >
          {icon}
        </ActionIcon>
      </div>
    </form>
  );
}

export function ClaimButton({ state, me }: { state: ApprovalCardState; me: string }) {
  const action = state.approval.claimed_by === me ? "release" : "claim";
  return (
    <UnstyledButton
      className={css.action}
      disabled={Boolean(state.sending)}
      title={messages.othersSeeThatYouClaimed}
      onClick={() => state.perform(action)}
    >
      <IconClaim {...ICON} />
      {action === "claim" ? messages.claim : messages.release}
    </UnstyledButton>
  );
}

/** Without HTTPS a page cannot write to the clipboard; it shows the link instead. */
export function CopyLink({ id }: { id: string }) {
  const [message, setMessage] = useState("");
  const link = `${location.origin}/a/${id}`;
  const copy = () =>
    navigator.clipboard
      ? navigator.clipboard.writeText(link).then(
          () => setMessage(messages.copied),
          () => setMessage(link),
        )
      : setMessage(link);
  return (
    <>
      <UnstyledButton className={css.action} onClick={() => void copy()}>
        <IconLink {...ICON} />
        {messages.copyLink}
      </UnstyledButton>
      {message && (
        <Text size="sm" role="status">
          {message}
        </Text>
      )}
    </>
  );
}
