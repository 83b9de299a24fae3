import { Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { callApi } from "../../../api/client";
import { Confirm } from "../../../components/Confirm";
import type { FreezeInfo } from "../../../components/FreezeBanner";
import { useSendMutation } from "../../../components/mutations";
import { Section } from "../../../components/Section";
import { isActiveKey } from "../data";
import * as messages from "./messages";

type Scope = FreezeInfo["scope"];

const SCOPES: { value: Scope; label: string; name: string }[] = [
  { value: "workspace", label: messages.wholeWorkspace, name: "" },
  { value: "agent", label: messages.oneAgent, name: messages.nameOfAgent },
  { value: "key", label: messages.oneKey, name: messages.key },
  { value: "tool", label: messages.tool, name: messages.toolNameHint },
];

/** The freeze form, for admins. Active freezes are shown above every page. */
export default function FreezesTab() {
  const [createdCount, setCreatedCount] = useState(0);
  return (
    <Section title={messages.freeze} about={messages.freezeHelp}>
      <NewFreeze key={createdCount} onCreated={() => setCreatedCount((before) => before + 1)} />
    </Section>
  );
}

/** A form for one freeze. It is replaced by an empty one after each freeze. */
function NewFreeze({ onCreated }: { onCreated: () => void }) {
  const [scope, setScope] = useState<Scope>("workspace");
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [isReasonMissing, setReasonMissing] = useState(false);
  const nameLabel = SCOPES.find(({ value }) => value === scope)?.name ?? "";
  const freeze = useSendMutation(
    (_: void) => callApi("post", "/api/freeze", { body: { scope, name: nameLabel ? name : "", reason } }),
    ["freezes"],
    onCreated,
  );
  return (
    <>
      <Select
        label={messages.scope}
        data={SCOPES}
        value={scope}
        allowDeselect={false}
        onChange={(value) => {
          setScope((value ?? "workspace") as Scope);
          setName("");
        }}
      />
      {scope === "key" && <KeySelect label={nameLabel} value={name} onChange={setName} />}
      {nameLabel && scope !== "key" && (
        <TextInput
          label={nameLabel}
          value={name}
          maxLength={200}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      )}
      <TextInput
        label={messages.reasonField}
        required
        value={reason}
        maxLength={500}
        error={isReasonMissing && !reason.trim() && messages.enterReason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <Confirm
        label={messages.freeze}
        consequence={messages.agentsAreStopped}
        sending={freeze.isPending}
        error={freeze.error}
        onConfirm={() => (reason.trim() ? freeze.mutate() : setReasonMissing(true))}
      />
    </>
  );
}

/** A key by its name; the server knows it by its id. */
function KeySelect({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (id: string) => void;
}) {
  const keys = useQuery({
    queryKey: ["keys"],
    queryFn: ({ signal }) => callApi("get", "/api/keys", { signal }),
  });
  const active = keys.data?.items.filter((key) => isActiveKey(key)) ?? [];
  return (
    <Select
      label={label}
      placeholder={messages.chooseKey}
      searchable
      nothingFoundMessage={messages.noKeyHasThisName}
      data={active.map(({ id, name, role }) => ({ value: id, label: `${name} (${role}, ${id}…)` }))}
      value={value || null}
      onChange={(id) => onChange(id ?? "")}
      error={keys.error?.message}
    />
  );
}
