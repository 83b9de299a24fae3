import { useRef, useState } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { stringifyJson } from "../api/json";
import type { Acknowledgements } from "./Findings";

type Ids = ReadonlySet<string>;
const NONE: Ids = new Set();

/** Reset when the arguments change. */
export function useAcknowledgements(now: ApprovalSnapshot, isRequired: boolean): Acknowledgements {
  const [{ digest, ids }, setAcknowledged] = useState({ digest: "", ids: NONE });
  const acknowledged = digest === now.args_sha256 ? ids : NONE;
  return {
    acknowledged,
    required: isRequired ? new Set(now.alarms) : NONE,
    toggle: (id) => setAcknowledged({ digest: now.args_sha256, ids: toggle(acknowledged, id) }),
  };
}

/** Acknowledgements of an edit apply only to the arguments that were sent. */
export interface EditAcknowledgements extends Acknowledgements {
  /** The acknowledged ids for these arguments; resets them for other arguments. */
  idsFor: (args: unknown) => string[];
}

/** The findings of an edit, which the server lists when it refuses the edit. */
export function useEditAcknowledgements(refused: ApiError | null): EditAcknowledgements {
  const [acknowledged, setAcknowledged] = useState(NONE);
  const sent = useRef("");
  const findings = refused?.code === "findings_not_acknowledged" ? refused.details.findings : [];
  return {
    acknowledged,
    required: new Set(Array.isArray(findings) ? findings.map(String) : []),
    toggle: (id) => setAcknowledged(toggle(acknowledged, id)),
    idsFor: (args) => {
      const text = stringifyJson(args);
      if (text === sent.current) return [...acknowledged];
      sent.current = text;
      setAcknowledged(NONE);
      return [];
    },
  };
}

/** Acknowledged findings whose argument is unchanged by an edit. */
export function stillAcknowledged(ids: Iterable<string>, before: unknown, after: unknown): string[] {
  return [...ids].filter((id) => {
    const pointer = id.slice(id.indexOf(":") + 1);
    return stringifyJson(valueAt(before, pointer)) === stringifyJson(valueAt(after, pointer));
  });
}

function valueAt(root: unknown, pointer: string): unknown {
  const steps = pointer.split("/").slice(1);
  return steps.reduce<unknown>((value, step) => {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    return typeof value === "object" && value !== null && Object.hasOwn(value, name)
      ? (value as Record<string, unknown>)[name]
      : undefined;
  }, root);
}

function toggle(ids: Ids, id: string): Ids {
  const next = new Set(ids);
  if (!next.delete(id)) next.add(id);
  return next;
}
