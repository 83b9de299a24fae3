import { Text } from "@mantine/core";
import type { Read } from "../api/approvals";
import { Ago } from "../components/Time";
import css from "./Card.module.css";
import { Words } from "./Text";

interface Line {
  seq: number;
  by: string;
  at: string;
  text: string;
}

/** What people asked the agent, what it said, and what they remarked to each other. */
export function Talk({ now }: { now: Read }) {
  const remarks = remarksOf(now.timeline);
  if (!now.questions.length && !remarks.length) return null;
  return (
    <div role="group" aria-label="Questions and remarks">
      <ul className={css.plainList}>
        {now.questions.map(({ number, by, at, text, reply }) => (
          <li key={number} data-question={number}>
            <strong>{by}</strong> asked, <Ago at={at} />: <Words text={text ?? "erased"} />
            <div className={css.quotation}>
              {reply ? (
                <>
                  Agent says (unverified): <Words text={reply.text ?? "erased"} />
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
            <strong>{by}</strong>, <Ago at={at} />: <Words text={text} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function remarksOf(timeline: Read["timeline"]): Line[] {
  return timeline
    .filter(({ kind, content }) => kind === "commented" && typeof content?.text === "string")
    .map(({ seq, actor, at, content }) => ({ seq, by: actor, at, text: String(content?.text) }));
}
