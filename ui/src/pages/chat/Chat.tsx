import { Text, Title } from "@mantine/core";
import { lazy, Suspense, useMemo } from "react";
import { Link, useLocation, useParams } from "wouter";
import { mayDecide, useMe } from "../../api/currentUser";
import { IconAgents, IconHistory } from "../../components/icons";
import { usePageTitle } from "../../components/PageTitle";
import { EmptyState, ErrorMessage } from "../../components/States";
import { Announcer } from "./Announcer";
import css from "./Chat.module.css";
import { Composer } from "./Composer";
import * as messages from "./messages";
import { ModelNotice } from "./ModelNotice";
import { ThreadPanel, ThreadSheet } from "./ThreadPanel";
import { useThreadReader, type ThreadSnapshot } from "./threadReader";
import { buildTranscript, openCards } from "./transcriptItems";
import { useChatAgents } from "./useChatAgents";
import { useSendMessage } from "./useSendMessage";

// A chat is new or has a transcript, so that each does without the other's part.
const Transcript = lazy(async () => ({ default: (await import("./Transcript")).Transcript }));
const NewConversation = lazy(async () => ({ default: (await import("./NewConversation")).NewConversation }));

/** The list of conversations, and the open or a new one. */
export default function Chat() {
  const { thread } = useParams<{ thread?: string }>();
  const me = useMe();
  if (me.data && !mayDecide(me.data))
    return <EmptyState title={messages.chatIsForReviewers}>{messages.askAdminForAccess}</EmptyState>;
  return (
    <div className={css.chat}>
      <ThreadPanel current={thread} />
      <Conversation thread={thread} />
    </div>
  );
}

/** One thread, or a new one: the transcript and the composer. */
function Conversation({ thread }: { thread: string | undefined }) {
  const [, navigate] = useLocation();
  const [reader, snapshot] = useThreadReader(thread);
  const agents = useChatAgents();
  const sender = useSendMessage(thread, agents.chosen, (accepted, text) => {
    if (thread) reader?.addSent(accepted.line, text);
    else navigate(`/chat/${accepted.thread}`);
  });
  const entries = snapshot?.state.entries;
  const items = useMemo(() => (entries ? buildTranscript(entries) : []), [entries]);
  const readOnlyReason = useReadOnlyReason(snapshot);
  const agent = snapshot?.thread?.agent ?? agents.chosen;
  usePageTitle(snapshot?.thread?.title ?? "");
  return (
    <section className={css.conversation} aria-label={messages.chat}>
      <Head thread={thread} snapshot={snapshot} />
      <Suspense fallback={<div />}>
        {reader && snapshot ? (
          <Transcript
            key={reader.id}
            reader={reader}
            snapshot={snapshot}
            items={items}
            onSend={readOnlyReason ? null : sender.send}
          />
        ) : (
          <NewConversation agents={agents} onSend={sender.send} isSending={sender.isSending} />
        )}
      </Suspense>
      <footer className={css.foot}>
        <div className={css.column}>
          {readOnlyReason ? (
            <Text size="sm">{readOnlyReason}</Text>
          ) : (
            <>
              <ModelNotice agents={agents} agent={agent} />
              <Composer
                thread={thread ?? ""}
                sender={sender}
                openApprovals={openCards(items)}
                workingReader={(snapshot?.state.status ?? "idle") !== "idle" ? reader : null}
                agent={agent}
              />
            </>
          )}
        </div>
      </footer>
      {snapshot && <Announcer items={items} status={snapshot.state.status} />}
    </section>
  );
}

function Head({ thread, snapshot }: { thread: string | undefined; snapshot: ThreadSnapshot | null }) {
  const details = snapshot?.thread;
  return (
    <div className={css.head}>
      <ThreadSheet current={thread} />
      <Title order={1} size="h4" className={css.title} title={details?.title}>
        {thread ? details?.title || messages.chat : messages.newChat}
      </Title>
      {details && (
        <>
          <span className={css.agent} title={messages.agent}>
            <IconAgents size={14} />
            {details.agent}
          </span>
          <Link
            href={`/history?thread_id=${encodeURIComponent(details.id)}`}
            className={css.history}
            aria-label={messages.allCallsInThisChat}
          >
            <IconHistory size={16} />
            <span>{messages.allCallsInThisChat}</span>
          </Link>
        </>
      )}
      {snapshot?.refused && snapshot.refused.status >= 400 && !details && (
        <ErrorMessage error={snapshot.refused} />
      )}
    </div>
  );
}

/** Admins may read other people's threads, but not write in them; nor does a thread go on without its agent. */
function useReadOnlyReason(snapshot: ThreadSnapshot | null): string {
  const me = useMe();
  const thread = snapshot?.thread;
  if (!thread || !me.data) return "";
  if (thread.user !== me.data.name) return messages.chatBelongsTo(thread.user);
  return thread.agent_missing ? messages.agentIsGone(thread.agent) : "";
}
