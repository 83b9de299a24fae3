import { Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { call, type Shapes } from "../../../api/client";
import { Loading, Problem } from "../../../components/States";
import { counts, useUsers } from "../data";
import { Section } from "../Section";
import { KeyList } from "./KeyList";
import { NewKey } from "./NewKey";

/** All keys of the workspace, for admins. */
export default function Keys() {
  const [search, setSearch] = useSearchParams();
  const all = search.get("state") === "all";
  const users = useUsers();
  const keys = useQuery({
    queryKey: ["keys"],
    queryFn: ({ signal }) => call("get", "/api/keys", { signal }),
  });
  return (
    <Section title="Keys" about="For agents' programs, and for programs that act as people.">
      <NewKey
        roles={["agent", "viewer", "reviewer", "admin"]}
        people={users.data?.items.map(({ name }) => name) ?? []}
        onMake={({ role, ...wanted }, once) =>
          call("post", "/api/keys", {
            body: { ...wanted, role: role as Shapes["KeyBody"]["role"], tools: [] },
            once,
          })
        }
      />
      <Switch
        label="Show revoked and expired keys"
        checked={all}
        onChange={(event) =>
          setSearch(event.currentTarget.checked ? { state: "all" } : {}, { replace: true })
        }
      />
      {keys.isPending && <Loading />}
      {keys.error && !keys.data && <Problem error={keys.error} again={() => void keys.refetch()} />}
      {keys.data && (
        <KeyList
          keys={keys.data.items.filter((key) => all || counts(key))}
          onRevoke={(key_id) => call("delete", "/api/keys/{key_id}", { path: { key_id } })}
        />
      )}
    </Section>
  );
}
