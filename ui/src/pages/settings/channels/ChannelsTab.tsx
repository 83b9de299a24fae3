import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "../../../api/client";
import { isAdmin, type Myself } from "../../../api/me";
import { Loading, Problem } from "../../../components/States";
import { Identities } from "../Identities";
import { Section } from "../Section";
import css from "../Settings.module.css";
import { ChannelRow } from "./ChannelRow";
import { Parked } from "./Parked";

/** The ways to people, how they stand, and what could not be said. Addresses and secrets stay on the server. */
export default function Channels({ me }: { me: Myself }) {
  const channels = useQuery({
    queryKey: ["channels"],
    queryFn: ({ signal }) => call("get", "/api/channels", { signal }),
    refetchInterval: 10_000,
  });
  if (channels.isPending) return <Loading />;
  if (!channels.data) return <Problem error={channels.error} again={() => void channels.refetch()} />;
  const { items } = channels.data;
  const alone = items.length === 1;
  return (
    <Stack gap="md">
      <Section
        title="Channels"
        about={
          alone
            ? `Only the dashboard, which is these pages, is configured for this workspace. Others are written into interlock.yaml on the server, under ${sections(me.workspace)}.`
            : "How people of this workspace hear of what waits. Channels are written into interlock.yaml on the server; they cannot be changed here."
        }
      >
        <ul className={css.list}>
          {items.map((channel) => (
            <ChannelRow key={channel.name} channel={channel} admin={isAdmin(me)} />
          ))}
        </ul>
      </Section>
      {!alone && <Parked admin={isAdmin(me)} />}
      {!alone && isAdmin(me) && (
        <Section
          title="Accounts elsewhere"
          about="Who somebody in a channel is here. What is decided through such an account counts as theirs."
        >
          <Identities whose="everybody" />
        </Section>
      )}
    </Stack>
  );
}

/** Each workspace has channels of its own; those of the default one stand at the top of the file. */
function sections(workspace: string): string {
  return workspace === "default" ? "channels and routing" : `workspaces: ${workspace}: channels and routing`;
}
