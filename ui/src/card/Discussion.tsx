import { Text } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import { TimeAgo } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import * as messages from "./messages";
import { usePersonName } from "./usePersonName";
import { MultilineText } from "./VisibleText";

interface CommentLine {
  seq: number;
  by: string;
  at: string;
  text: string;
}

/** Questions to the agent with its replies, and comments by people. */
export function Discussion({ approval }: { approval: ApprovalSnapshot }) {
  const nameOf = usePersonName();
  const comments = listComments(approval.timeline);
  if (!approval.questions.length && !comments.length) return null;
  return (
    <div role="group" aria-label={messages.questionsAndComments}>
      <ul className={css.plainList}>
        {approval.questions.map(({ number, by, at, text, reply }) => (
          <li key={number} data-question={number}>
            <strong>{nameOf(by, true)}</strong> {messages.askedSuffix} <TimeAgo at={at} />:{" "}
            <MultilineText text={text ?? messages.erased} />
            <div className={css.quotation}>
              {reply ? (
                <>
                  {messages.agentSaysUnverified} <MultilineText text={reply.text ?? messages.erased} />
                </>
              ) : (
                <Text size="sm" span>
                  {approval.status === "pending"
                    ? messages.agentHasNotAnsweredYet
                    : messages.agentDidNotAnswer}
                </Text>
              )}
            </div>
          </li>
        ))}
        {comments.map(({ seq, by, at, text }) => (
          <li key={seq} data-remark>
            <strong>{nameOf(by, true)}</strong>, <TimeAgo at={at} />: <MultilineText text={text} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function listComments(timeline: ApprovalSnapshot["timeline"]): CommentLine[] {
  return timeline
    .filter(({ kind, content }) => kind === "commented" && typeof content?.text === "string")
    .map(({ seq, actor, at, content }) => ({ seq, by: actor, at, text: String(content?.text) }));
}
