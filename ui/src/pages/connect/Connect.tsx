import { Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { useActivity, type AgentActivity } from "../../api/activity";
import { isAdmin, useMe } from "../../api/currentUser";
import { usePageTitle } from "../../components/PageTitle";
import { ErrorMessage, Loading } from "../../components/States";
import { skipFirstRun } from "../../firstRun";
import css from "./Connect.module.css";
import { FirstCall } from "./FirstCall";
import { AgentKeyForm, type AgentKey } from "./AgentKeyForm";
import * as messages from "./messages";
import { SnippetTabs } from "./SnippetTabs";

const AGENT = "my-agent"; // until another name is given

/** A key for an agent, a text to copy that uses it, and the agent's first call as soon as it arrives. */
export default function Connect() {
  const activity = useActivity();
  const { data, error } = activity;
  if (error && !data) return <ErrorMessage error={error} onRetry={() => void activity.refetch()} />;
  return data ? <ConnectSteps before={data.items} /> : <Loading />;
}

/** `before` is what agents had done when the page was opened: its title must not change under the reader. */
function ConnectSteps({ before }: { before: AgentActivity[] }) {
  const me = useMe().data;
  const [isFirst] = useState(() => !before.some(({ last_approval_id }) => last_approval_id));
  const [params, setParams] = useSearchParams();
  const [name, setName] = useState(params.get("agent") ?? AGENT);
  const [made, setMade] = useState<AgentKey | null>(null);
  const [hasCalled, setCalled] = useState(false);
  usePageTitle(isFirst ? messages.connectYourFirstAgent : messages.connectAgent);
  const agent = made?.agent ?? (name.trim() || AGENT);
  const isWaiting = made !== null || before.some((known) => known.name === agent && !known.last_approval_id);
  const keep = (key: AgentKey) => {
    setMade(key);
    setParams((now) => withParam(now, "agent", key.agent), { replace: true }); // after a reload it still waits for this agent
  };
  return (
    <Stack gap="md" className={css.page}>
      {isFirst && <Steps current={hasCalled ? 3 : 2} />}
      <div>
        <Title order={1} className={css.title}>
          {isFirst ? messages.connectYourFirstAgent : messages.connectAgent}
        </Title>
        <Text c="dimmed" className={css.lead}>
          {messages.whatToWrap}
        </Text>
      </div>
      {isAdmin(me) ? (
        <AgentKeyForm made={made} name={name} onName={setName} onMade={keep} onAgain={() => setMade(null)} />
      ) : (
        <Text role="note">{messages.onlyAdminsCreateKeys}</Text>
      )}
      <SnippetTabs agent={agent} secret={made?.key ?? ""} />
      {isWaiting && (
        <FirstCall
          key={made?.id ?? agent}
          agent={agent}
          secret={made?.key ?? ""}
          onCall={() => setCalled(true)}
        />
      )}
      <Further isFirst={isFirst} />
    </Stack>
  );
}

function withParam(before: URLSearchParams, name: string, value: string): URLSearchParams {
  const after = new URLSearchParams(before);
  after.set(name, value);
  return after;
}

function Steps({ current }: { current: number }) {
  return (
    <ol className={css.steps} aria-label={messages.steps}>
      {messages.STEPS.map((step, index) => {
        const isDone = index + 1 < current;
        return (
          <li
            key={step}
            data-done={isDone || undefined}
            aria-current={index + 1 === current ? "step" : undefined}
          >
            <span className={css.number} aria-hidden="true">
              {isDone ? "✓" : index + 1}
            </span>
            {step}
          </li>
        );
      })}
    </ol>
  );
}

function Further({ isFirst }: { isFirst: boolean }) {
  const me = useMe().data;
  const [, navigate] = useLocation();
  return (
    <Group gap="lg" className={css.further}>
      {isAdmin(me) && (
        <Anchor component={Link} href="/policy" size="sm">
          {messages.chooseWhatNeedsApproval}
        </Anchor>
      )}
      {isAdmin(me) && (
        <Anchor component={Link} href="/settings/people" size="sm">
          {messages.inviteReviewers}
        </Anchor>
      )}
      <Anchor href="/docs" size="sm">
        {messages.httpReference}
      </Anchor>
      {isFirst && (
        <Button
          variant="subtle"
          size="compact-sm"
          ml="auto"
          onClick={() => {
            skipFirstRun();
            navigate("/inbox");
          }}
        >
          {messages.skipForNow}
        </Button>
      )}
    </Group>
  );
}
