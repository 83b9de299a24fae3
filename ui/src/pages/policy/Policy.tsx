import { Alert, Code, Tabs } from "@mantine/core";
import { lazy, Suspense, useState, type ComponentType } from "react";
import { useSearchParams } from "wouter";
import { isAdmin, useMe } from "../../api/me";
import { Page } from "../../components/Page";
import { Empty, Loading, Problem } from "../../components/States";
import { useInForce, useVersions, type Stored } from "./data";
import { useDesk, type Desk } from "./draft";
import { DraftBar } from "./DraftBar";
import { Rules } from "./Rules";

/** What every tab is given. */
export interface TabProps {
  desk: Desk;
  /** To another tab; what was done is said there. */
  go: (tab: string, said?: string) => void;
}

const TABS: Record<string, [name: string, Tab: ComponentType<TabProps>]> = {
  rules: ["Rules", Rules],
  text: ["Text", lazy(() => import("./Text"))],
  explain: ["Explain", lazy(() => import("./Explain"))],
  rehearse: ["Rehearse", lazy(() => import("./Rehearse"))],
  shadow: ["Shadow rules", lazy(() => import("./Shadow"))],
  versions: ["Versions", lazy(() => import("./Versions"))],
};
const Review = lazy(() => import("./Review"));

export default function Policy() {
  const me = useMe().data;
  return (
    <Page title="Policy">
      {isAdmin(me) ? (
        <ForAdmins />
      ) : (
        <Empty title="The policy is for admins">
          Why a call asked, and by which rule, stands on its card. Ask an admin if a rule should change.
        </Empty>
      )}
    </Page>
  );
}

function ForAdmins() {
  const inForce = useInForce();
  if (inForce.isPending) return <Loading />;
  if (!inForce.data) return <Problem error={inForce.error} again={() => void inForce.refetch()} />;
  return <Workplace inForce={inForce.data} />;
}

function Workplace({ inForce }: { inForce: Stored }) {
  const desk = useDesk(inForce);
  const { tab, go, said } = useTab();
  const [, Tab] = TABS[tab] ?? ["", Rules];
  return (
    <>
      <StaleFile />
      <Tabs value={tab} onChange={(next) => next && go(next)} keepMounted={false}>
        <Tabs.List aria-label="Parts of the policy">
          {Object.entries(TABS).map(([key, [name]]) => (
            <Tabs.Tab key={key} value={key} mih={44}>
              {name}
            </Tabs.Tab>
          ))}
          {tab === "review" && (
            <Tabs.Tab value="review" mih={44}>
              Review
            </Tabs.Tab>
          )}
        </Tabs.List>
        <p role="status">{said}</p>
        <Tabs.Panel value={tab}>
          <Suspense fallback={<Loading />}>
            {tab === "review" ? <Review desk={desk} go={go} /> : <Tab desk={desk} go={go} />}
          </Suspense>
        </Tabs.Panel>
      </Tabs>
      {desk.draft && tab !== "review" && <DraftBar desk={desk} go={go} />}
    </>
  );
}

/** The file that the server was started with was replaced: which counts, and what would put it back. */
function StaleFile() {
  const stale = useVersions().data?.stale;
  if (!stale) return null;
  return (
    <Alert
      color="yellow"
      variant="outline"
      mb="md"
      role="note"
      title="The server's policy file is not in force"
    >
      {stale.message} To put it back: <Code>{stale.command}</Code>
    </Alert>
  );
}

function useTab() {
  const [params, setParams] = useSearchParams();
  const [said, setSaid] = useState("");
  const wanted = params.get("tab") ?? "rules";
  const go = (tab: string, words = "") => {
    setSaid(words);
    setParams(tab === "rules" ? {} : { tab });
  };
  return { tab: wanted in TABS || wanted === "review" ? wanted : "rules", go, said };
}
