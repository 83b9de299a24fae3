import { Anchor, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { Link, useLocation } from "wouter";
import { useMe } from "../../api/me";
import { Problem } from "../../components/States";
import { Announcer } from "./Announcer";
import { Beginning } from "./Beginning";
import css from "./Chat.module.css";
import { Composer } from "./Composer";
import { Log } from "./Log";
import type { Reading } from "./reader";
import { openCards, tell } from "./tell";
import { ThreadSheet } from "./ThreadPanel";
import { useAgents } from "./agents";
import { useReader } from "./useReader";
import { useSay } from "./useSay";

/** One thread, or the beginning of one: what was said, what came of it, and the place to write. */
export function Conversation({ thread }: { thread: string | undefined }) {
  const [, go] = useLocation();
  const [reader, reading] = useReader(thread);
  const agents = useAgents();
  const saying = useSay(thread, agents.chosen, (accepted, text) => {
    if (thread) reader?.said(accepted.line, text);
    else go(`/chat/${accepted.thread}`);
  });
  const facts = reading?.story.facts;
  const items = useMemo(() => (facts ? tell(facts) : []), [facts]);
  const isTheirs = useIsTheirs(reading);
  return (
    <section className={css.conversation} aria-label="Conversation">
      <Head thread={thread} reading={reading} />
      {reader && reading ? (
        <Log
          key={reader.id}
          reader={reader}
          reading={reading}
          items={items}
          onSay={isTheirs ? null : saying.say}
        />
      ) : (
        <Beginning agents={agents} onSay={saying.say} isSending={saying.isSending} />
      )}
      <footer className={css.foot}>
        <div className={css.column}>
          {isTheirs ? (
            <Text size="sm">
              This is the conversation of {reading?.thread?.user}: you can read it and stop it.
            </Text>
          ) : (
            <Composer
              thread={thread ?? ""}
              saying={saying}
              replaces={openCards(items).length}
              works={(reading?.story.status ?? "idle") !== "idle" ? reader : null}
            />
          )}
        </div>
      </footer>
      {reading && <Announcer items={items} status={reading.story.status} />}
    </section>
  );
}

function Head({ thread, reading }: { thread: string | undefined; reading: Reading | null }) {
  const about = reading?.thread;
  return (
    <div className={css.head}>
      <ThreadSheet current={thread} />
      <Title order={1} size="h4" className={css.title} title={about?.title}>
        {thread ? about?.title || "Conversation" : "New conversation"}
      </Title>
      {about && (
        <>
          <Text size="sm" visibleFrom="sm">
            with {about.agent}
          </Text>
          <Anchor component={Link} href={`/history?thread_id=${encodeURIComponent(about.id)}`} size="sm">
            History
          </Anchor>
        </>
      )}
      {reading?.refused && reading.refused.status >= 400 && !about && <Problem error={reading.refused} />}
    </div>
  );
}

/** Admins may look at other people's threads, and never speak in them. */
function useIsTheirs(reading: Reading | null): boolean {
  const me = useMe();
  const user = reading?.thread?.user;
  return user !== undefined && me.data !== undefined && user !== me.data.name;
}
