import { useRef, useState } from "react";
import { useMove, type Kind, type Read, type Verb } from "../api/approvals";
import { Refused } from "../api/client";
import { write } from "../api/json";
import { editsSince, type Edit } from "./changes";
import type { Looks } from "./Findings";
import { stillTrue, useEditLooks, useLooks, type EditLooks } from "./looks";
import { useSettled } from "./settled";

/** What is open in the card besides itself. */
export type Opened = "" | "edit" | "respond" | "reject";

/** What one wrote and did not send; it stays when a form is closed. */
export interface Drafts {
  reason: string;
  message: string;
  comment: string;
}

/** One approval and everything that this person is doing with it. */
export interface Held {
  now: Read;
  /** The arguments that this person looked at; what they decide is about these. */
  seen: Read;
  /** Somebody changed them since. */
  change: readonly Edit[] | null;
  looks: Looks;
  editLooks: EditLooks;
  /** Nothing appeared or changed just now. */
  settled: boolean;
  /** One may approve, and looked at everything that wants a look. */
  ready: boolean;
  opened: Opened;
  open: (what: Opened) => void;
  drafts: Drafts;
  draft: (change: Partial<Drafts>) => void;
  may: (kind: Kind) => boolean;
  /** What is on its way: a kind of decision, or a verb. */
  sending: string;
  refused: Refused | null;
  decide: (kind: Kind, more?: Record<string, unknown>) => void;
  move: (verb: Verb, body?: Record<string, unknown>, then?: () => void) => void;
  lookAgain: () => void;
}

const EMPTY: Drafts = { reason: "", message: "", comment: "" };

export function useHeld(now: Read, onMoved?: (now: Read) => void): Held {
  const [seen, setSeen] = useState(now);
  const [opened, open] = useState<Opened>("");
  const [drafts, setDrafts] = useState(EMPTY);
  const { sending, refused, send, forget } = useSending(now.id);
  const change = sending ? null : editsSince(seen, now);
  const may = (kind: Kind) => now.status === "pending" && now.may_decide.includes(kind);
  const looks = useLooks(now, may("approve"));
  const editLooks = useEditLooks(refused);
  const moved = (after: Read) => {
    open("");
    setDrafts(EMPTY);
    setSeen(after);
    onMoved?.(after);
  };
  return {
    now,
    seen,
    change,
    looks,
    editLooks,
    settled: useSettled(`${now.id} ${now.version}`),
    ready: may("approve") && !change && !sending && now.alarms.every((id) => looks.looked.has(id)),
    opened,
    open: (what) => {
      forget();
      open(what);
    },
    drafts,
    draft: (more) => setDrafts({ ...drafts, ...more }),
    may,
    sending,
    refused,
    decide: (kind, more = {}) => {
      const kept = kind === "edit" ? stillTrue(looks.looked, seen.args, more.args) : [...looks.looked];
      const acknowledged = kind === "edit" ? [...kept, ...editLooks.about(more.args)] : kept;
      const comment = drafts.comment ? { comment: drafts.comment } : {};
      send("decision", { kind, args_sha256: seen.args_sha256, acknowledged, ...comment, ...more }, moved);
    },
    move: (verb, body = {}, then) =>
      send(verb, body, (after) => {
        then?.();
        if (verb === "undo") moved(after);
      }),
    lookAgain: () => {
      forget();
      setSeen(now);
    },
  };
}

/** The same words sent again have the same key, so that a try whose answer was lost counts once. */
function useSending(id: string) {
  const move = useMove(id);
  const last = useRef({ said: "", key: "" });
  const send = (verb: Verb, body: Record<string, unknown>, then: (now: Read) => void) => {
    const said = `${verb} ${write(body)}`;
    if (last.current.said !== said) last.current = { said, key: newKey() };
    const onSuccess = (after: Read) => {
      last.current = { said: "", key: "" };
      then(after);
    };
    move.mutate({ verb, body, once: last.current.key }, { onSuccess });
  };
  return {
    send,
    forget: () => move.reset(),
    sending: move.isPending ? sendingOf(move.variables) : "",
    refused: move.error instanceof Refused ? move.error : null,
  };
}

function sendingOf({ verb, body }: { verb: Verb; body: unknown }): string {
  return verb === "decision" ? (body as { kind: string }).kind : verb;
}

/** Also where there is no HTTPS, and so no randomUUID. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
