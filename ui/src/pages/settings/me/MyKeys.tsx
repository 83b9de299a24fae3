import { useQuery } from "@tanstack/react-query";
import { call } from "../../../api/client";
import type { Myself } from "../../../api/me";
import { Loading, Problem } from "../../../components/States";
import { KeyList } from "../keys/KeyList";
import { NewKey } from "../keys/NewKey";
import { Section } from "../Section";
import { counts, type Role } from "../data";

const ROLES: Role[] = ["viewer", "reviewer", "admin"];

/** Keys that act as oneself, with at most one's own role. */
export function MyKeys({ me }: { me: Myself }) {
  const keys = useQuery({
    queryKey: ["keys", "mine"],
    queryFn: ({ signal }) => call("get", "/api/me/keys", { signal }),
  });
  return (
    <Section
      title="My keys"
      about="For programs that act as you, with the HTTP interface or the command line. They end with a new password and when you sign out everywhere."
    >
      {keys.isPending && <Loading />}
      {keys.error && !keys.data && <Problem error={keys.error} again={() => void keys.refetch()} />}
      {keys.data && (
        <KeyList
          keys={keys.data.items.filter(counts)}
          onRevoke={(key_id) => call("delete", "/api/me/keys/{key_id}", { path: { key_id } })}
        />
      )}
      <NewKey
        roles={ROLES.slice(0, ROLES.indexOf(me.role as Role) + 1)}
        onMake={({ name, role, expires_in }, once) =>
          call("post", "/api/me/keys", { body: { name, role: role as Role, expires_in }, once })
        }
      />
    </Section>
  );
}
