import { Text } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import { TimeAgo } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import { MultilineText } from "./VisibleText";

interface Line {
  seq: number;
  by: string;
  at: string;
  text: string;
}

/** What people asked the agent, what it said, and what they remarked to each other. */
export function Discussion({ now }: { now: ApprovalSnapshot }) {
  const remarks = remarksOf(now.timeline);
  if (!now.questions.length && !remarks.length) return null;
  return (
    <div role="group" aria-label="Questions and comments">
      <ul className={css.plainList}>
        {now.questions.map(({ number, by, at, text, reply }) => (
          <li key={number} data-question={number}>
            <strong>{by}</strong> asked, <TimeAgo at={at} />: <MultilineText text={text ?? "erased"} />
            <div className={css.quotation}>
              {reply ? (
                <>
                  Agent says (unverified): <MultilineText text={reply.text ?? "erased"} />
                </>
              ) : (
                <Text size="sm" span>
                  {now.status === "pending" ? "The agent has not answered yet." : "The agent did not answer."}
                </Text>
              )}
            </div>
          </li>
        ))}
        {remarks.map(({ seq, by, at, text }) => (
          <li key={seq} data-remark>
            <strong>{by}</strong>, <TimeAgo at={at} />: <MultilineText text={text} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function remarksOf(timeline: ApprovalSnapshot["timeline"]): Line[] {
  return timeline
    .filter(({ kind, content }) => kind === "commented" && typeof content?.text === "string")
    .map(({ seq, actor, at, content }) => ({ seq, by: actor, at, text: String(content?.text) }));
}
