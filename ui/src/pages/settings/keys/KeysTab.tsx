import { Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { callApi, type Schemas } from "../../../api/client";
import { Section } from "../../../components/Section";
import { ErrorMessage, Loading } from "../../../components/States";
import { isActiveKey, useUsers } from "../data";
import { KeyList, NewKey } from "./KeyList";
import * as messages from "./messages";

/** All keys of the workspace, for admins. */
export default function KeysTab() {
  const [search, setSearch] = useSearchParams();
  const all = search.get("state") === "all";
  const users = useUsers();
  const keys = useQuery({
    queryKey: ["keys"],
    queryFn: ({ signal }) => callApi("get", "/api/keys", { signal }),
  });
  return (
    <Section title={messages.keys} about={messages.keysHelp}>
      <NewKey
        roles={["agent", "viewer", "reviewer", "admin"]}
        people={users.data?.items.map(({ name }) => name) ?? []}
        onCreate={({ role, ...wanted }, idempotencyKey) =>
          callApi("post", "/api/keys", {
            body: { ...wanted, role: role as Schemas["KeyBody"]["role"], tools: [] },
            idempotencyKey,
          })
        }
      />
      <Switch
        label={messages.showRevokedAndExpiredKeys}
        checked={all}
        onChange={(event) =>
          setSearch(event.currentTarget.checked ? { state: "all" } : {}, { replace: true })
        }
      />
      {keys.isPending && <Loading />}
      {keys.error && !keys.data && <ErrorMessage error={keys.error} onRetry={() => void keys.refetch()} />}
      {keys.data && (
        <KeyList
          keys={keys.data.items.filter((key) => all || isActiveKey(key))}
          onRevoke={(key_id) => callApi("delete", "/api/keys/{key_id}", { path: { key_id } })}
        />
      )}
    </Section>
  );
}
