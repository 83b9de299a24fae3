import { Alert, Button, Code, Group, Paper, Tabs, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useState, type ComponentType } from "react";
import { useSearchParams } from "wouter";
import { isAdmin, useMe } from "../../api/currentUser";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { summarizeDiff } from "./describePolicy";
import css from "./Policy.module.css";
import {
  TYPING_PAUSE,
  usePolicyCheck,
  usePolicyInForce,
  usePolicyVersions,
  type StoredPolicy,
} from "./queries";
import { Rules } from "./Rules";
import { usePolicyDraft, type PolicyDraftState } from "./usePolicyDraft";

/** What every tab is given. */
export interface TabProps {
  desk: PolicyDraftState;
  /** To another tab; what was done is said there. */
  go: (tab: string, said?: string) => void;
}

const TABS: Record<string, [name: string, Tab: ComponentType<TabProps>]> = {
  rules: ["Rules", Rules],
  text: ["Text", lazy(() => import("./PolicyText"))],
  explain: ["Explain", lazy(() => import("./Explain"))],
  rehearse: ["Rehearse", lazy(() => import("./Rehearse"))],
  shadow: ["Shadow rules", lazy(() => import("./ShadowRules"))],
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
        <EmptyState title="The policy is available to admins">
          {" "}
          Each card shows the rule that asked for approval. To change a rule, ask an admin.{" "}
        </EmptyState>
      )}
    </Page>
  );
}

function ForAdmins() {
  const inForce = usePolicyInForce();
  if (inForce.isPending) return <Loading />;
  if (!inForce.data) return <ErrorMessage error={inForce.error} again={() => void inForce.refetch()} />;
  return <Workplace inForce={inForce.data} />;
}

function Workplace({ inForce }: { inForce: StoredPolicy }) {
  const desk = usePolicyDraft(inForce);
  const { tab, go, said } = useTab();
  const [, Tab] = TABS[tab] ?? ["", Rules];
  return (
    <>
      <StaleFile />
      <Tabs value={tab} onChange={(next) => next && go(next)} keepMounted={false}>
        <Tabs.List aria-label="Policy sections">
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
  const stale = usePolicyVersions().data?.stale;
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

/** While there is a draft: what it changes, and the way to put it in force. */
function DraftBar({ desk, go }: TabProps) {
  const [leaving, setLeaving] = useState(false);
  const [settled] = useDebouncedValue(desk.text, TYPING_PAUSE);
  const checked = usePolicyCheck(settled).data;
  return (
    <Paper withBorder p="sm" className={css.bar} component="section" aria-label="Your draft">
      <Text size="sm">
        <b>Your draft is not in force.</b> {checked && words(checked)}
      </Text>
      <Group gap="xs">
        <Button onClick={() => go("review")} disabled={!checked?.valid}>
          Review and put in force
        </Button>
        {leaving ? (
          <Button color="red" variant="outline" onClick={desk.discard}>
            Confirm discard
          </Button>
        ) : (
          <Button variant="default" onClick={() => setLeaving(true)}>
            Discard
          </Button>
        )}
      </Group>
    </Paper>
  );
}

function words({ valid, problems, diff }: NonNullable<ReturnType<typeof usePolicyCheck>["data"]>): string {
  if (!valid) return problems.length === 1 ? "It has an error." : `It has ${problems.length} errors.`;
  const summed = summarizeDiff(diff);
  return summed
    ? `${summed[0]?.toUpperCase()}${summed.slice(1)}.`
    : "Its rules are the same as those in force.";
}
