import { useState } from "react";
import { stringifyJson } from "../../api/json";
import {
  IconAnswered,
  IconCheck,
  IconClock,
  IconClose,
  IconUnfold,
  IconWarning,
} from "../../components/icons";
import css from "./CallLine.module.css";
import { summarizeResult } from "./cardLine";
import type { ChatCall, ResultEntry } from "./threadEntries";
import * as messages from "./transcriptMessages";

const MAX_LENGTH = 4_000; // characters of arguments or a result

type Tone = "good" | "bad" | "unknown" | "over" | "working";

const STATUS_LABELS: Record<string, [label: string, tone: Tone]> = {
  succeeded: [messages.done, "good"],
  allowed: [messages.done, "good"],
  answered: [messages.answered, "over"],
  responded: [messages.answeredNotRun, "over"],
  confirming: [messages.needsConfirmation, "over"],
  rejected: [messages.rejected, "bad"],
  denied: [messages.denied, "bad"],
  expired: [messages.expired, "over"],
  cancelled: [messages.withdrawn, "over"],
  failed: [messages.failed, "bad"],
  invalid: [messages.notRunInvalidArguments, "bad"],
  unknown: [messages.outcomeUnknown, "unknown"],
};

/** One tool call in a line: its name and what came of it; arguments and result are folded. */
export function CallLine({ call, result }: { call: ChatCall; result?: ResultEntry }) {
  const [isOpen, setOpen] = useState(false);
  const [label, tone] = readStatus(result);
  const found = tone === "good" ? summarizeResult(result?.result) : "";
  return (
    <details
      className={css.call}
      data-call={call.name}
      data-state={result?.status ?? "waits"}
      data-tone={tone}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary className={css.head}>
        <CallIcon tone={tone} isAnswer={label.startsWith(messages.answered)} />
        <span className={css.name}>{call.name}</span>
        <span>
          {label}
          {found && ` · ${found}`}
        </span>
        <IconUnfold className={css.chevron} size={14} />
      </summary>
      {isOpen && (
        <div className={css.about}>
          {call.args !== undefined && call.args !== null && (
            <Value name={messages.argumentsLabel} value={call.args} />
          )}
          {result && <Value name={messages.result} value={result.result} />}
        </div>
      )}
    </details>
  );
}

function readStatus(result: ResultEntry | undefined): [label: string, tone: Tone] {
  if (!result) return [messages.running, "working"];
  return STATUS_LABELS[result.status] ?? [result.status || messages.done, "over"];
}

function CallIcon({ tone, isAnswer }: { tone: Tone; isAnswer: boolean }) {
  if (tone === "working") return <span className={css.spinner} />;
  if (isAnswer) return <IconAnswered className={css.icon} size={16} />;
  if (tone === "good") return <IconCheck className={css.icon} size={16} />;
  if (tone === "bad") return <IconClose className={css.icon} size={16} />;
  return tone === "unknown" ? (
    <IconWarning className={css.icon} size={16} />
  ) : (
    <IconClock className={css.icon} size={16} />
  );
}

function Value({ name, value }: { name: string; value: unknown }) {
  const text = typeof value === "string" ? value : stringifyJson(value, 2);
  const omitted = text.length - MAX_LENGTH;
  return (
    <>
      <div>{name}</div>
      <pre className={css.value} tabIndex={0} aria-label={name}>
        {omitted > 0 ? messages.textWithMoreCharacters(text.slice(0, MAX_LENGTH), omitted) : text}
      </pre>
    </>
  );
}
