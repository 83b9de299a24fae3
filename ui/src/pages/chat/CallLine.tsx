import { useState } from "react";
import { stringifyJson } from "../../api/json";
import css from "./CallLine.module.css";
import type { ChatCall, ResultEntry } from "./threadEntries";

const MAX_LENGTH = 4_000; // characters of arguments or a result

const STATUS_LABELS: Record<string, [label: string, color: string]> = {
  succeeded: ["done", "green"],
  allowed: ["done", "green"],
  answered: ["answered", "green"],
  responded: ["answered, not run", "gray"],
  confirming: ["needs confirmation", "gray"],
  rejected: ["rejected", "red"],
  denied: ["denied", "red"],
  expired: ["timed out", "red"],
  cancelled: ["cancelled", "gray"],
  failed: ["failed", "red"],
  invalid: ["not run: invalid arguments", "red"],
  unknown: ["outcome unknown", "red"],
};

/** One tool call: its name and status; arguments and result are folded. */
export function CallLine({ call, result }: { call: ChatCall; result?: ResultEntry }) {
  const [isOpen, setOpen] = useState(false);
  const [label, color] = result
    ? (STATUS_LABELS[result.status] ?? [result.status || "done", "gray"])
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
          {label}
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
  const omitted = text.length - MAX_LENGTH;
  return (
    <>
      <div>{name}</div>
      <pre className={css.value} tabIndex={0} aria-label={name}>
        {omitted > 0
          ? `${text.slice(0, MAX_LENGTH)}\n… ${omitted.toLocaleString("en")} more characters`
          : text}
      </pre>
    </>
  );
}
