import { Anchor } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { callApi } from "../../api/client";
import type { CurrentUser } from "../../api/currentUser";
import { ErrorMessage, Loading } from "../../components/States";
import { formatDateTime } from "./data";
import { Section } from "./Section";
import css from "./Settings.module.css";

/** What runs here, and how far the record goes. */
export default function AboutTab({ me }: { me: CurrentUser }) {
  const about = useQuery({
    queryKey: ["about"],
    queryFn: async ({ signal }) => {
      const [installed, workspace, head] = await Promise.all([
        callApi("get", "/api/about", { signal }),
        callApi("get", "/api/workspaces/current", { signal }),
        callApi("get", "/api/audit/head", { signal }),
      ]);
      return { ...installed, since: workspace.created_at, head };
    },
  });
  if (about.isPending) return <Loading />;
  if (!about.data) return <ErrorMessage error={about.error} again={() => void about.refetch()} />;
  const { version, database, retention, provider, workspace, since, head } = about.data;
  const facts: [string, ReactNode][] = [
    ["Version", version],
    ["Workspace", `${workspace}, since ${formatDateTime(since)}`],
    ["You", `${me.name}, ${me.role}`],
    ["Database", database],
    ["Contents kept", retention === "forever" ? "for ever" : `${retention} after the end, then erased`],
    ["Sign-in", provider ? "by password, link, or your organisation's provider" : "by password or link"],
    [
      "Ledger",
      `${head.seq} entries; the newest is of ${head.seq ? formatDateTime(new Date(head.at).toISOString()) : "never"}`,
    ],
    ["Ledger's end", <code key="end">{head.link}</code>],
  ];
  return (
    <Section
      title="About"
      about="The end of the ledger, kept elsewhere, later shows whether its tail was cut off."
    >
      <dl className={css.facts}>
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
      <Anchor href="/docs" size="sm">
        The HTTP interface of this server
      </Anchor>
    </Section>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
