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
import { useCardDrafts, type CardDrafts } from "./useCardDrafts";
import { useShortSign } from "./useShortSign";

/** The form that is open in the card. */
type OpenForm = "" | "edit" | "respond" | "reject";

/** An approval, and the user's work on it. */
export interface ApprovalCardState {
  approval: ApprovalSnapshot;
  /** The arguments that the user reviewed; a decision applies to these. */
  seen: ApprovalSnapshot;
  /** Edits by others since then. */
  newEdits: readonly ArgumentEdit[] | null;
  acknowledgements: Acknowledgements;
  editAcknowledgements: EditAcknowledgements;
  /** The card did not appear or change just now. */
  settled: boolean;
  /** Something was pressed before the card had settled: it does nothing but say so. */
  tooEarly: () => void;
  /** That was just now, and only the card can say so. */
  isEarly: boolean;
  /** The user may approve, and all findings are checked. */
  ready: boolean;
  opened: OpenForm;
  open: (form: OpenForm) => void;
  drafts: CardDrafts;
  draft: (changes: Partial<CardDrafts>) => void;
  may: (kind: DecisionKind) => boolean;
  /** The running request: a kind of decision, or an action. */
  sending: string;
  refusal: ApiError | null;
  decide: (kind: DecisionKind, more?: Record<string, unknown>) => void;
  perform: (action: ApprovalAction, body?: Record<string, unknown>, then?: () => void) => void;
  acceptChanges: () => void;
}

const DECIDED_DRAFTS = { reason: "", message: "", comment: "" }; // what a decision carries

export function useApprovalCard(
  now: ApprovalSnapshot,
  onChanged?: (now: ApprovalSnapshot, action: ApprovalAction) => void,
  onTooEarly?: () => void,
): ApprovalCardState {
  const [seen, setSeen] = useState(now);
  const [opened, open] = useState<OpenForm>("");
  const [drafts, draft] = useCardDrafts(now.id);
  const [isEarly, showEarly] = useShortSign();
  const { sending, refusal, send, forget } = useAction(now.id);
  const newEdits = sending ? null : findEditsSince(seen, now);
  const may = (kind: DecisionKind) => now.status === "pending" && now.may_decide.includes(kind);
  const acknowledgements = useAcknowledgements(now, may("approve"));
  const editAcknowledgements = useEditAcknowledgements(refusal);
  const finish = (after: ApprovalSnapshot, action: ApprovalAction = "decision") => {
    open("");
    draft(DECIDED_DRAFTS);
    setSeen(after);
    onChanged?.(after, action);
  };
  return {
    approval: now,
    seen,
    newEdits,
    acknowledgements,
    editAcknowledgements,
    settled: useIsStable(`${now.id} ${now.version}`),
    tooEarly: onTooEarly ?? showEarly,
    isEarly,
    ready:
      may("approve") &&
      !newEdits &&
      !sending &&
      now.alarms.every((id) => acknowledgements.acknowledged.has(id)),
    opened,
    open: (form) => {
      forget();
      open(form);
    },
    drafts,
    draft,
    may,
    sending,
    refusal,
    decide: (kind, more = {}) => {
      const acknowledgedIds =
        kind === "edit"
          ? stillAcknowledged(acknowledgements.acknowledged, seen.args, more.args)
          : [...acknowledgements.acknowledged];
      const acknowledged =
        kind === "edit" ? [...acknowledgedIds, ...editAcknowledgements.idsFor(more.args)] : acknowledgedIds;
      const comment = drafts.comment ? { comment: drafts.comment } : {};
      send("decision", { kind, args_sha256: seen.args_sha256, acknowledged, ...comment, ...more }, finish);
    },
    perform: (action, body = {}, then) =>
      send(action, body, (after) => {
        then?.();
        if (action === "undo") finish(after, action);
      }),
    acceptChanges: () => {
      forget();
      setSeen(now);
    },
  };
}

/** A repeated request keeps its idempotency key, so that a retry after a lost response counts once. */
function useAction(id: string) {
  const perform = useApprovalAction(id);
  const last = useRef({ fingerprint: "", key: "" });
  const send = (
    action: ApprovalAction,
    body: Record<string, unknown>,
    then: (now: ApprovalSnapshot) => void,
  ) => {
    const fingerprint = `${action} ${stringifyJson(body)}`;
    if (last.current.fingerprint !== fingerprint) last.current = { fingerprint, key: newIdempotencyKey() };
    const onSuccess = (after: ApprovalSnapshot) => {
      last.current = { fingerprint: "", key: "" };
      then(after);
    };
    // also if the user has moved on meanwhile; what failed is shown by the card
    void perform
      .mutateAsync({ action, body, idempotencyKey: last.current.key })
      .then(onSuccess, () => undefined);
  };
  return {
    send,
    forget: () => perform.reset(),
    sending: perform.isPending ? actionName(perform.variables) : "",
    refusal: perform.error instanceof ApiError ? perform.error : null,
  };
}

function actionName({ action, body }: { action: ApprovalAction; body: unknown }): string {
  return action === "decision" ? (body as { kind: string }).kind : action;
}

/** Also works without HTTPS, where randomUUID is missing. */
function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

/** Whether the value has been stable for a moment: earlier key presses were meant for other content. */
function useIsStable(form: string): boolean {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(form), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [form]);
  return settled === form;
}
