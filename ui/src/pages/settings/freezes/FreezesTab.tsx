import { Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { callApi } from "../../../api/client";
import { Confirm } from "../../../components/Confirm";
import type { FreezeInfo } from "../../../components/FreezeBanner";
import { useSendMutation } from "../../../components/mutations";
import { Section } from "../../../components/Section";
import { isActiveKey } from "../data";

type Scope = FreezeInfo["scope"];

const SCOPES: { value: Scope; label: string; name: string }[] = [
  { value: "workspace", label: "The whole workspace", name: "" },
  { value: "agent", label: "One agent", name: "Name of the agent" },
  { value: "key", label: "One key", name: "Key" },
  { value: "tool", label: "A tool", name: "Name of the tool; * matches any characters" },
];

/** The freeze form, for admins. Active freezes are shown above every page. */
export default function FreezesTab() {
  const [createdCount, setCreatedCount] = useState(0);
  return (
    <Section
      title="Freeze"
      about="Stops calls at once: calls in its scope cannot start, and new calls are refused, including reads. Running calls continue, people can still decide, and deadlines are paused until you unfreeze."
    >
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
        label="Scope"
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
        label="Reason (shown to everybody affected)"
        required
        value={reason}
        maxLength={500}
        error={isReasonMissing && !reason.trim() && "Enter a reason: it is shown to everybody affected."}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <Confirm
        label="Freeze"
        consequence="Agents in the scope are stopped until an admin unfreezes it."
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
      placeholder="Choose a key"
      searchable
      nothingFoundMessage="No key has this name."
      data={active.map(({ id, name, role }) => ({ value: id, label: `${name} (${role}, ${id}…)` }))}
      value={value || null}
      onChange={(id) => onChange(id ?? "")}
      error={keys.error?.message}
    />
  );
}
