import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { callApi } from "../../api/client";
import { CopyIconButton } from "./CopyIconButton";
import * as messages from "./messages";
import css from "./ModelNotice.module.css";
import type { ChatAgents } from "./useChatAgents";

const SETTING = "export OPENAI_API_KEY=your-key";

/** Says that an agent cannot answer before anything is typed, and what to do. */
export function ModelNotice({ agents, agent }: { agents: ChatAgents; agent: string }) {
  const model = agents.all.find(({ name }) => name === agent)?.model;
  const checked = useQuery({
    queryKey: ["models", model],
    queryFn: ({ signal }) => callApi("get", "/api/models", { query: { name: model }, signal }),
    staleTime: 60_000,
    enabled: model !== undefined,
  });
  const found = checked.data?.items[0];
  if (!found?.problem) return null;
  return (
    <div role="alert" className={css.notice} data-model-problem>
      <b>{found.name ? messages.cannotAnswerYet(agent) : messages.noModelSoCannotAnswer(agent)}</b>
      {found.name ? <p>{found.problem}</p> : <HowToSet />}
    </div>
  );
}

function HowToSet() {
  const line = useRef<HTMLElement>(null);
  return (
    <>
      <p>{messages.setKeyAndRestart}</p>
      <div className={css.line}>
        <code ref={line}>{SETTING}</code>
        <CopyIconButton text={SETTING} source={line} label={messages.copyThisLine} />
      </div>
      <p>
        {messages.otherKeysWork} <code>interlock serve --demo</code> {messages.needsNoKey}
      </p>
    </>
  );
}
