import { useState } from "react";
import { stringifyJson } from "../../api/json";
import css from "./CallLine.module.css";
import type { ChatCall, ResultEntry } from "./threadState";

const MOST = 4_000; // characters of arguments or a result

const STATES: Record<string, [words: string, color: string]> = {
  succeeded: ["done", "green"],
  allowed: ["done", "green"],
  answered: ["answered", "green"],
  responded: ["answered, not run", "gray"],
  confirming: ["needs confirmation", "gray"],
  rejected: ["rejected", "red"],
  denied: ["denied", "red"],
  expired: ["timed out", "red"],
  cancelled: ["withdrawn", "gray"],
  failed: ["failed", "red"],
  invalid: ["not run: invalid arguments", "red"],
  unknown: ["outcome unknown", "red"],
};

/** One call of a tool: its name and what became of it; what it was given and gave is folded. */
export function CallLine({ call, result }: { call: ChatCall; result?: ResultEntry }) {
  const [isOpen, setOpen] = useState(false);
  const [words, color] = result
    ? (STATES[result.status] ?? [result.status || "done", "gray"])
    : ["pending", "gray"];
  return (
    <details
      className={css.call}
      data-call={call.name}
      data-state={result?.status ?? "waits"}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary className={css.head}>
        <span className={css.name}>{call.name}</span>
        <span className={css.state} data-color={color}>
          {words}
        </span>
      </summary>
      {isOpen && (
        <div className={css.about}>
          {call.args !== undefined && call.args !== null && <Value name="Arguments" value={call.args} />}
          {result && <Value name="Result" value={result.result} />}
        </div>
      )}
    </details>
  );
}

function Value({ name, value }: { name: string; value: unknown }) {
  const text = typeof value === "string" ? value : stringifyJson(value, 2);
  const cut = text.length - MOST;
  return (
    <>
      <div>{name}</div>
      <pre className={css.value} tabIndex={0} aria-label={name}>
        {cut > 0 ? `${text.slice(0, MOST)}\n… ${cut.toLocaleString("en")} more characters` : text}
      </pre>
    </>
  );
}
