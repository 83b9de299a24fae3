import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import * as messages from "./messages";
import css from "./Settings.module.css";

type Owner = "mine" | "everybody";

/** Channel accounts linked to a user. */
export function Identities({ owner }: { owner: Owner }) {
  const path = owner === "mine" ? "/api/me/identities" : "/api/identities";
  const found = useQuery({
    queryKey: ["identities", owner],
    queryFn: ({ signal }) => callApi("get", path, { signal }),
  });
  if (found.isPending) return <Loading />;
  if (!found.data) return <ErrorMessage error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data.items.length) return <Text size="sm">{messages.noLinkedAccounts}</Text>;
  return (
    <ul className={css.list}>
      {found.data.items.map((identity) => (
        <Identity key={identity.id} identity={identity} owner={owner} />
      ))}
    </ul>
  );
}

function Identity({ identity, owner }: { identity: Schemas["IdentityInfo"]; owner: Owner }) {
  const path = { identity_id: identity.id };
  const remove = useSendMutation(
    (_: void) =>
      owner === "mine"
        ? callApi("delete", "/api/me/identities/{identity_id}", { path })
        : callApi("delete", "/api/identities/{identity_id}", { path }),
    ["identities"],
  );
  return (
    <li className={css.row} data-identity={identity.outside}>
      <Stack gap={0}>
        <Text>
          <code>{identity.outside}</code> {messages.accountInChannel(identity.channel)}
          {owner === "everybody" && messages.accountIsUser(identity.user)}
        </Text>
        <Text size="sm" c="dimmed" component="div">
          {messages.since} <TimeAgo at={identity.at} />
        </Text>
      </Stack>
      <Confirm
        label={messages.remove}
        consequence={messages.decisionsWillBeRefused}
        sending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
      />
    </li>
  );
}
