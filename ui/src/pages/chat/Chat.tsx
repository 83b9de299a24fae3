import { Anchor, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { Link, useLocation, useParams } from "wouter";
import { mayDecide, useMe } from "../../api/currentUser";
import { EmptyState, ErrorMessage } from "../../components/States";
import { Announcer } from "./Announcer";
import css from "./Chat.module.css";
import { Composer } from "./Composer";
import { NewConversation, useChatAgents } from "./NewConversation";
import { ThreadPanel, ThreadSheet } from "./ThreadPanel";
import { useThreadReader, type ThreadSnapshot } from "./threadReader";
import { Transcript } from "./Transcript";
import { buildTranscript, openCards } from "./transcriptItems";
import { useSendMessage } from "./useSendMessage";

/** The conversations at the side, one of them or a new one in the middle. */
export default function Chat() {
  const { thread } = useParams<{ thread?: string }>();
  const me = useMe();
  if (me.data && !mayDecide(me.data))
    return (
      <EmptyState title="Chat is available to reviewers and admins">Ask an admin for access.</EmptyState>
    );
  return (
    <div className={css.chat}>
      <ThreadPanel current={thread} />
      <Conversation thread={thread} />
    </div>
  );
}

/** One thread, or the beginning of one: what was said, what came of it, and the place to write. */
function Conversation({ thread }: { thread: string | undefined }) {
  const [, go] = useLocation();
  const [reader, reading] = useThreadReader(thread);
  const agents = useChatAgents();
  const saying = useSendMessage(thread, agents.chosen, (accepted, text) => {
    if (thread) reader?.said(accepted.line, text);
    else go(`/chat/${accepted.thread}`);
  });
  const facts = reading?.story.facts;
  const items = useMemo(() => (facts ? buildTranscript(facts) : []), [facts]);
  const isTheirs = useIsTheirs(reading);
  return (
    <section className={css.conversation} aria-label="Conversation">
      <Head thread={thread} reading={reading} />
      {reader && reading ? (
        <Transcript
          key={reader.id}
          reader={reader}
          reading={reading}
          items={items}
          onSay={isTheirs ? null : saying.say}
        />
      ) : (
        <NewConversation agents={agents} onSay={saying.say} isSending={saying.isSending} />
      )}
      <footer className={css.foot}>
        <div className={css.column}>
          {isTheirs ? (
            <Text size="sm">
              This conversation belongs to {reading?.thread?.user}. You can read it and stop it.
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

function Head({ thread, reading }: { thread: string | undefined; reading: ThreadSnapshot | null }) {
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
      {reading?.refused && reading.refused.status >= 400 && !about && (
        <ErrorMessage error={reading.refused} />
      )}
    </div>
  );
}

/** Admins may look at other people's threads, and never speak in them. */
function useIsTheirs(reading: ThreadSnapshot | null): boolean {
  const me = useMe();
  const user = reading?.thread?.user;
  return user !== undefined && me.data !== undefined && user !== me.data.name;
}
