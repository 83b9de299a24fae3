import { Alert, Button, Code, Group, Paper, Tabs, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useState, type ComponentType } from "react";
import { useSearchParams } from "wouter";
import { isAdmin, useMe } from "../../api/currentUser";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { listProblems, summarizeDiff } from "./describePolicy";
import * as messages from "./messages";
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
  /** Opens another tab, with a message; the text at a line. */
  go: (tab: string, message?: string, line?: number) => void;
  /** The line that the text is opened at. */
  line?: number;
}

const TABS: Record<string, [name: string, Tab: ComponentType<TabProps>]> = {
  rules: [messages.rules, Rules],
  text: [messages.text, lazy(() => import("./PolicyText"))],
  explain: [messages.explain, lazy(() => import("./Explain"))],
  rehearse: [messages.rehearse, lazy(() => import("./Rehearse"))],
  shadow: [messages.shadowRules, lazy(() => import("./ShadowRules"))],
  versions: [messages.versions, lazy(() => import("./Versions"))],
};
const Review = lazy(() => import("./Review"));

export default function Policy() {
  const me = useMe().data;
  const tab = useSearchParams()[0].get("tab") ?? "rules";
  const name = TABS[tab]?.[0] ?? (tab === "review" ? messages.review : messages.policy);
  return (
    <Page title={messages.policy} opened={tab === "rules" ? messages.policy : name}>
      {isAdmin(me) ? (
        <PolicyLoader />
      ) : (
        <EmptyState title={messages.policyIsAvailableToAdmins}>{messages.cardsShowTheRule}</EmptyState>
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
  const { tab, go, message, line } = useTab();
  const [, Tab] = TABS[tab] ?? ["", Rules];
  return (
    <>
      <StaleFile />
      <Tabs value={tab} onChange={(next) => next && go(next)} keepMounted={false}>
        <Tabs.List aria-label={messages.policySections}>
          {Object.entries(TABS).map(([key, [name]]) => (
            <Tabs.Tab key={key} value={key} mih={44}>
              {name}
            </Tabs.Tab>
          ))}
          {tab === "review" && (
            <Tabs.Tab value="review" mih={44}>
              {messages.review}
            </Tabs.Tab>
          )}
        </Tabs.List>
        <p role="status">{message}</p>
        <Tabs.Panel value={tab}>
          <Suspense fallback={<Loading />}>
            {tab === "review" ? (
              <Review draftState={draftState} go={go} />
            ) : (
              <Tab draftState={draftState} go={go} line={line} />
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
    <Alert color="yellow" variant="outline" mb="md" role="note" title={messages.fileIsNotInForce}>
      {messages.toPutItBack(stale.message)} <Code>{stale.command}</Code>
    </Alert>
  );
}

function useTab() {
  const [params, setParams] = useSearchParams();
  const [{ message, line }, setShown] = useState({ message: "", line: 0 });
  const tabParam = params.get("tab") ?? "rules";
  const go: TabProps["go"] = (tab, message = "", line = 0) => {
    setShown({ message, line });
    setParams(tab === "rules" ? {} : { tab });
  };
  return { tab: tabParam in TABS || tabParam === "review" ? tabParam : "rules", go, message, line };
}

/** The draft's changes, and the buttons to review or discard it. */
function DraftBar({ draftState, go }: TabProps) {
  const [isConfirming, setConfirming] = useState(false);
  const [settled] = useDebouncedValue(draftState.text, TYPING_PAUSE);
  const checked = usePolicyCheck(settled).data;
  return (
    <Paper withBorder p="sm" className={css.bar} component="section" aria-label={messages.yourDraft}>
      <Text size="sm">
        <b>{messages.yourDraftIsNotInForce}</b> {checked && summary(checked)}
      </Text>
      <Group gap="xs">
        <Button onClick={() => go("review")} disabled={!checked?.valid}>
          {messages.reviewAndPutInForce}
        </Button>
        {isConfirming ? (
          <Button color="red" variant="outline" onClick={draftState.discard}>
            {messages.confirmDiscard}
          </Button>
        ) : (
          <Button variant="default" onClick={() => setConfirming(true)}>
            {messages.discard}
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
    const count = more.length ? messages.itHasErrors(more.length + 1) : messages.oneErrorInDraft;
    return first ? messages.lineWithMessage(count, first.line, first.message) : count;
  }
  const diffSummary = summarizeDiff(diff);
  return diffSummary ? `${diffSummary[0]?.toUpperCase()}${diffSummary.slice(1)}.` : messages.sameRules;
}
