import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { callApi } from "../../api/client";
import { CopyIconButton } from "./CopyIconButton";
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
      <b>{found.name ? `${agent} cannot answer yet` : `No model is set, so ${agent} cannot answer`}</b>
      {found.name ? <p>{found.problem}</p> : <HowToSet />}
    </div>
  );
}

function HowToSet() {
  const line = useRef<HTMLElement>(null);
  return (
    <>
      <p>Set a key on the server, and start it again:</p>
      <div className={css.line}>
        <code ref={line}>{SETTING}</code>
        <CopyIconButton text={SETTING} source={line} label="Copy this line" />
      </div>
      <p>
        ANTHROPIC_API_KEY and GOOGLE_API_KEY work too. <code>interlock serve --demo</code> needs no key.
      </p>
    </>
  );
}
