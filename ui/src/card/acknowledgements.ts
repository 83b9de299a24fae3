import { useRef, useState } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { stringifyJson } from "../api/json";
import type { Acknowledgements } from "./Findings";

type Ids = ReadonlySet<string>;
const NONE: Ids = new Set();

/** Void when the arguments change: whoever looked, looked at others. */
export function useAcknowledgements(now: ApprovalSnapshot, isWanted: boolean): Acknowledgements {
  const [{ digest, ids }, setLooked] = useState({ digest: "", ids: NONE });
  const looked = digest === now.args_sha256 ? ids : NONE;
  return {
    looked,
    wanted: isWanted ? new Set(now.alarms) : NONE,
    look: (id) => setLooked({ digest: now.args_sha256, ids: toggled(looked, id) }),
  };
}

/** Looks at an edit count for the arguments that were sent, and for no others. */
export interface EditAcknowledgements extends Acknowledgements {
  /** The ids that count for these arguments; from now on the looks are about them. */
  about: (args: unknown) => string[];
}

/** Of an edit: the server says which of the new arguments have to be looked at, by refusing it. */
export function useEditAcknowledgements(refused: ApiError | null): EditAcknowledgements {
  const [looked, setLooked] = useState(NONE);
  const sent = useRef("");
  const named = refused?.code === "findings_not_acknowledged" ? refused.details.findings : [];
  return {
    looked,
    wanted: new Set(Array.isArray(named) ? named.map(String) : []),
    look: (id) => setLooked(toggled(looked, id)),
    about: (args) => {
      const text = stringifyJson(args);
      if (text === sent.current) return [...looked];
      sent.current = text;
      setLooked(NONE);
      return [];
    },
  };
}

/** Of alarms that were looked at, those whose argument an edit left as it was. */
export function stillAcknowledged(ids: Iterable<string>, before: unknown, after: unknown): string[] {
  return [...ids].filter((id) => {
    const pointer = id.slice(id.indexOf(":") + 1);
    return stringifyJson(valueAt(before, pointer)) === stringifyJson(valueAt(after, pointer));
  });
}

function valueAt(whole: unknown, pointer: string): unknown {
  const steps = pointer.split("/").slice(1);
  return steps.reduce<unknown>((value, step) => {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    return typeof value === "object" && value !== null && Object.hasOwn(value, name)
      ? (value as Record<string, unknown>)[name]
      : undefined;
  }, whole);
}

function toggled(ids: Ids, id: string): Ids {
  const next = new Set(ids);
  if (!next.delete(id)) next.add(id);
  return next;
}
