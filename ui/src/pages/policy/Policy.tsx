import { Alert, Button, Code, Group, Paper, Tabs, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useState, type ComponentType } from "react";
import { useSearchParams } from "wouter";
import { isAdmin, useMe } from "../../api/currentUser";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { listProblems, summarizeDiff } from "./describePolicy";
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

/** The props of every tab. */
export interface TabProps {
  draftState: PolicyDraftState;
  /** Opens another tab, with a message. */
  go: (tab: string, message?: string) => void;
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
  const tab = useSearchParams()[0].get("tab") ?? "rules";
  const name = TABS[tab]?.[0] ?? (tab === "review" ? "Review" : "Policy");
  return (
    <Page title="Policy" opened={tab === "rules" ? "Policy" : name}>
      {isAdmin(me) ? (
        <PolicyLoader />
      ) : (
        <EmptyState title="The policy is available to admins">
          Each card shows the rule that asked for approval. To change a rule, ask an admin.
        </EmptyState>
      )}
    </Page>
  );
}

function PolicyLoader() {
  const inForce = usePolicyInForce();
  if (inForce.isPending) return <Loading />;
  if (!inForce.data) return <ErrorMessage error={inForce.error} onRetry={() => void inForce.refetch()} />;
  return <PolicyTabs inForce={inForce.data} />;
}

function PolicyTabs({ inForce }: { inForce: StoredPolicy }) {
  const draftState = usePolicyDraft(inForce);
  const { tab, go, message } = useTab();
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
        <p role="status">{message}</p>
        <Tabs.Panel value={tab}>
          <Suspense fallback={<Loading />}>
            {tab === "review" ? (
              <Review draftState={draftState} go={go} />
            ) : (
              <Tab draftState={draftState} go={go} />
            )}
          </Suspense>
        </Tabs.Panel>
      </Tabs>
      {draftState.draft && tab !== "review" && <DraftBar draftState={draftState} go={go} />}
    </>
  );
}

/** A warning that the server's policy file was replaced, and the command to restore it. */
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
  const [message, setMessage] = useState("");
  const tabParam = params.get("tab") ?? "rules";
  const go = (tab: string, summary = "") => {
    setMessage(summary);
    setParams(tab === "rules" ? {} : { tab });
  };
  return { tab: tabParam in TABS || tabParam === "review" ? tabParam : "rules", go, message };
}

/** The draft's changes, and the buttons to review or discard it. */
function DraftBar({ draftState, go }: TabProps) {
  const [isConfirming, setConfirming] = useState(false);
  const [settled] = useDebouncedValue(draftState.text, TYPING_PAUSE);
  const checked = usePolicyCheck(settled).data;
  return (
    <Paper withBorder p="sm" className={css.bar} component="section" aria-label="Your draft">
      <Text size="sm">
        <b>Your draft is not in force.</b> {checked && summary(checked)}
      </Text>
      <Group gap="xs">
        <Button onClick={() => go("review")} disabled={!checked?.valid}>
          Review and put in force
        </Button>
        {isConfirming ? (
          <Button color="red" variant="outline" onClick={draftState.discard}>
            Confirm discard
          </Button>
        ) : (
          <Button variant="default" onClick={() => setConfirming(true)}>
            Discard
          </Button>
        )}
      </Group>
    </Paper>
  );
}

/** The first error is named here: the list of all of them stands below a long text. */
function summary(checked: NonNullable<ReturnType<typeof usePolicyCheck>["data"]>): string {
  const { valid, diff } = checked;
  const [first, ...more] = listProblems(checked);
  if (!valid) {
    const count = more.length ? `It has ${more.length + 1} errors.` : "It has an error.";
    return first ? `${count} ${first.line > 0 ? `Line ${first.line}: ` : ""}${first.message}` : count;
  }
  const diffSummary = summarizeDiff(diff);
  return diffSummary
    ? `${diffSummary[0]?.toUpperCase()}${diffSummary.slice(1)}.`
    : "Its rules are the same as those in force.";
}
