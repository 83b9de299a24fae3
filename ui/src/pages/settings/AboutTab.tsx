import { Anchor } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { callApi } from "../../api/client";
import type { CurrentUser } from "../../api/currentUser";
import { Section } from "../../components/Section";
import { ErrorMessage, Loading } from "../../components/States";
import { formatDateTime } from "../../components/TimeAgo";
import css from "./Settings.module.css";

/** Version, database, retention, and the head of the ledger. */
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
  if (!about.data) return <ErrorMessage error={about.error} onRetry={() => void about.refetch()} />;
  const { version, database, retention, provider, workspace, since, head } = about.data;
  const facts: [string, ReactNode][] = [
    ["Version", version],
    ["Workspace", `${workspace}, since ${formatDateTime(since)}`],
    ["You", `${me.name}, ${me.role}`],
    ["Database", database],
    ["Retention", retention === "forever" ? "forever" : `${retention} after the end of a call`],
    ["Sign-in", provider ? "password, link, or your organisation's provider" : "password or link"],
    [
      "Ledger",
      `${head.seq.toLocaleString("en")} entries; newest: ${head.seq ? formatDateTime(head.at) : "none"}`,
    ],
    ["Ledger head", <code key="end">{head.link}</code>],
  ];
  return (
    <Section
      title="About"
      about="Store the ledger head elsewhere to show later that no entries were removed from the end."
    >
      <dl className={css.facts}>
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
      <Anchor href="/docs" size="sm">
        HTTP API reference
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
