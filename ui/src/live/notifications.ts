import { useEffect } from "react";
import { readApproval, type ApprovalSnapshot } from "../api/approvals";
import type { CurrentUser } from "../api/currentUser";
import { escapeInvisible } from "../components/escapeInvisible";
import { live, type LedgerEntry } from "./live";
import * as messages from "./messages";

const SETTING_KEY = "interlock-notifications";
const RENDER_TIME = 700; // milliseconds until an open page shows a new approval
const ANSWER_TIME = 300;
const MAX_OPEN = 5; // notifications at a time
type ScreenMessage = { query: string } | { shownId: string };

export type NotificationState = "on" | "off" | "denied" | "impossible";

/** Whether notifications are enabled and allowed in this browser. */
export function readNotificationState(): NotificationState {
  if (typeof Notification === "undefined") return "impossible";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && localStorage.getItem(SETTING_KEY) === "on" ? "on" : "off";
}

/** Call only after a click: the browser asks for permission once. */
export async function enableNotifications(): Promise<NotificationState> {
  if ((await Notification.requestPermission()) === "granted") localStorage.setItem(SETTING_KEY, "on");
  return readNotificationState();
}

export function disableNotifications(): NotificationState {
  localStorage.removeItem(SETTING_KEY);
  return readNotificationState();
}

/** The leading tab notifies of approvals that need the user's decision and are visible in no tab. */
export function useNotifications(me: CurrentUser): void {
  useEffect(() => {
    const screenQuery = new ScreenQuery();
    const unsubscribe = live.subscribe((entry) => {
      if (live.isLeader && readNotificationState() === "on" && isNew(entry))
        void notifyIfHidden(entry.approval_id, screenQuery);
    });
    return () => {
      unsubscribe();
      screenQuery.close();
    };
  }, [me.name]);
}

function isNew(entry: LedgerEntry): boolean {
  return entry.kind === "proposed" && entry.data.status === "pending";
}

async function notifyIfHidden(id: string, screenQuery: ScreenQuery): Promise<void> {
  const approval = await readApproval(id).catch(() => null);
  if (!approval || !needsMyDecision(approval) || (await screenQuery.isShown(id))) return;
  showNotification(approval);
}

function needsMyDecision(approval: ApprovalSnapshot): boolean {
  return approval.status === "pending" && approval.may_decide.length > 0;
}

const openNotifications: Notification[] = [];

/** Shows the tool and the requester. No arguments, and so no sentence: a lock screen is public. */
function showNotification({ id, card, requester }: ApprovalSnapshot): void {
  try {
    const notification = new Notification(messages.approvalNeeded, {
      body: requester ? messages.toolForRequester(card.tool, escapeInvisible(requester)) : card.tool,
      tag: id,
      icon: "/icon.svg",
    });
    notification.onclick = () => {
      notification.close();
      window.open(`/a/${encodeURIComponent(id)}`, "interlock-asks"); // in a new tab, to keep the input in this one
    };
    openNotifications.push(notification);
    if (openNotifications.length > MAX_OPEN) openNotifications.shift()?.close();
  } catch {
    disableNotifications(); // phones have no notifications without an installed app
  }
}

/** Asks all tabs of the browser whether an approval is visible. */
class ScreenQuery {
  private readonly channel = new BroadcastChannel("interlock-screens");
  private readonly reportedIds = new Set<string>();

  constructor() {
    this.channel.addEventListener("message", ({ data }: MessageEvent<ScreenMessage>) => {
      if ("shownId" in data) this.reportedIds.add(data.shownId);
      else if (isOnScreen(data.query))
        this.channel.postMessage({ shownId: data.query } satisfies ScreenMessage);
    });
  }

  async isShown(id: string): Promise<boolean> {
    await delay(RENDER_TIME);
    this.channel.postMessage({ query: id } satisfies ScreenMessage);
    await delay(ANSWER_TIME);
    return isOnScreen(id) || this.reportedIds.delete(id);
  }

  close(): void {
    this.channel.close();
  }
}

function isOnScreen(id: string): boolean {
  const escapedId = CSS.escape(id);
  return (
    document.visibilityState === "visible" &&
    document.querySelector(`[data-approval="${escapedId}"], [data-row="${escapedId}"]`) !== null
  );
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
