import { useEffect, useRef, useState } from "react";
import {
  useApprovalAction,
  type ApprovalAction,
  type ApprovalSnapshot,
  type DecisionKind,
} from "../api/approvals";
import { ApiError } from "../api/client";
import { stringifyJson } from "../api/json";
import {
  stillAcknowledged,
  useAcknowledgements,
  useEditAcknowledgements,
  type EditAcknowledgements,
} from "./acknowledgements";
import { findEditsSince, type ArgumentEdit } from "./ArgumentEdits";
import { SETTLE_MS } from "./clock";
import type { Acknowledgements } from "./Findings";

/** What is open in the card besides itself. */
type OpenForm = "" | "edit" | "respond" | "reject";

/** What one wrote and did not send; it stays when a form is closed. */
interface CardDrafts {
  reason: string;
  message: string;
  comment: string;
}

/** One approval and everything that this person is doing with it. */
export interface ApprovalCardState {
  now: ApprovalSnapshot;
  /** The arguments that this person looked at; what they decide is about these. */
  seen: ApprovalSnapshot;
  /** Somebody changed them since. */
  change: readonly ArgumentEdit[] | null;
  looks: Acknowledgements;
  editLooks: EditAcknowledgements;
  /** Nothing appeared or changed just now. */
  settled: boolean;
  /** One may approve, and looked at everything that wants a look. */
  ready: boolean;
  opened: OpenForm;
  open: (what: OpenForm) => void;
  drafts: CardDrafts;
  draft: (change: Partial<CardDrafts>) => void;
  may: (kind: DecisionKind) => boolean;
  /** What is on its way: a kind of decision, or a verb. */
  sending: string;
  refused: ApiError | null;
  decide: (kind: DecisionKind, more?: Record<string, unknown>) => void;
  move: (verb: ApprovalAction, body?: Record<string, unknown>, then?: () => void) => void;
  lookAgain: () => void;
}

const EMPTY: CardDrafts = { reason: "", message: "", comment: "" };

export function useApprovalCard(
  now: ApprovalSnapshot,
  onMoved?: (now: ApprovalSnapshot) => void,
): ApprovalCardState {
  const [seen, setSeen] = useState(now);
  const [opened, open] = useState<OpenForm>("");
  const [drafts, setDrafts] = useState(EMPTY);
  const { sending, refused, send, forget } = useSending(now.id);
  const change = sending ? null : findEditsSince(seen, now);
  const may = (kind: DecisionKind) => now.status === "pending" && now.may_decide.includes(kind);
  const looks = useAcknowledgements(now, may("approve"));
  const editLooks = useEditAcknowledgements(refused);
  const moved = (after: ApprovalSnapshot) => {
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
    settled: useIsStable(`${now.id} ${now.version}`),
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
      const kept =
        kind === "edit" ? stillAcknowledged(looks.looked, seen.args, more.args) : [...looks.looked];
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
  const move = useApprovalAction(id);
  const last = useRef({ said: "", key: "" });
  const send = (
    verb: ApprovalAction,
    body: Record<string, unknown>,
    then: (now: ApprovalSnapshot) => void,
  ) => {
    const said = `${verb} ${stringifyJson(body)}`;
    if (last.current.said !== said) last.current = { said, key: newKey() };
    const onSuccess = (after: ApprovalSnapshot) => {
      last.current = { said: "", key: "" };
      then(after);
    };
    move.mutate({ verb, body, once: last.current.key }, { onSuccess });
  };
  return {
    send,
    forget: () => move.reset(),
    sending: move.isPending ? sendingOf(move.variables) : "",
    refused: move.error instanceof ApiError ? move.error : null,
  };
}

function sendingOf({ verb, body }: { verb: ApprovalAction; body: unknown }): string {
  return verb === "decision" ? (body as { kind: string }).kind : verb;
}

/** Also where there is no HTTPS, and so no randomUUID. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

/** Whether `what` has stood there for a moment: what is pressed sooner was meant for something else. */
function useIsStable(what: string): boolean {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(what), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [what]);
  return settled === what;
}
