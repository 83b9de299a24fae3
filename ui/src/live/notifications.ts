import { useEffect } from "react";
import { readApproval, type ApprovalSnapshot } from "../api/approvals";
import type { CurrentUser } from "../api/currentUser";
import { visible } from "../components/visible";
import { live, type LedgerEntry } from "./live";

const WANTED = "interlock-notifications";
const RENDERED = 700; // milliseconds in which a page that is open shows what is new
const ANSWERED = 300;
const MOST = 5; // at once; more of them would only be in the way
type Word = { shows: string } | { shown: string };

export type NotificationState = "on" | "off" | "denied" | "impossible";

/** Whether this browser tells of what waits, and may. */
export function readNotificationState(): NotificationState {
  if (typeof Notification === "undefined") return "impossible";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && localStorage.getItem(WANTED) === "on" ? "on" : "off";
}

/** Only after a click: the browser asks the person, once. */
export async function enableNotifications(): Promise<NotificationState> {
  if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "on");
  return readNotificationState();
}

export function disableNotifications(): NotificationState {
  localStorage.removeItem(WANTED);
  return readNotificationState();
}

/** Of what waits for this person and is on no screen of theirs, the leading tab tells the browser. */
export function useNotifications(me: CurrentUser): void {
  useEffect(() => {
    const screens = new Screens();
    const unsubscribe = live.subscribe((entry) => {
      if (live.leads && readNotificationState() === "on" && isNew(entry))
        void tellOf(entry.approval_id, screens);
    });
    return () => {
      unsubscribe();
      screens.close();
    };
  }, [me.name]);
}

function isNew(entry: LedgerEntry): boolean {
  return entry.kind === "proposed" && entry.data.status === "pending";
}

async function tellOf(id: string, screens: Screens): Promise<void> {
  const approval = await readApproval(id).catch(() => null);
  if (!approval || !waitsForMe(approval) || (await screens.show(id))) return;
  tell(approval);
}

function waitsForMe(approval: ApprovalSnapshot): boolean {
  return approval.status === "pending" && approval.may_decide.length > 0;
}

const open: Notification[] = [];

/** The tool and who asked. Nothing of the arguments, and so not the sentence: a lock screen is no place for them. */
function tell({ id, card, requester }: ApprovalSnapshot): void {
  try {
    const notification = new Notification("Approval needed", {
      body: requester ? `${card.tool}, for ${visible(requester)}` : card.tool,
      tag: id,
      icon: "/icon.svg",
    });
    notification.onclick = () => {
      notification.close();
      window.open(`/a/${encodeURIComponent(id)}`, "interlock-asks"); // a tab of its own: what is typed in this one stays
    };
    open.push(notification);
    if (open.length > MOST) open.shift()?.close();
  } catch {
    disableNotifications(); // phones have no notifications without an installed app
  }
}

/** Asks all tabs of the browser whether somebody is looking at an approval already. */
class Screens {
  private readonly channel = new BroadcastChannel("interlock-screens");
  private readonly shown = new Set<string>();

  constructor() {
    this.channel.addEventListener("message", ({ data }: MessageEvent<Word>) => {
      if ("shown" in data) this.shown.add(data.shown);
      else if (isOnScreen(data.shows)) this.channel.postMessage({ shown: data.shows } satisfies Word);
    });
  }

  async show(id: string): Promise<boolean> {
    await after(RENDERED);
    this.channel.postMessage({ shows: id } satisfies Word);
    await after(ANSWERED);
    return isOnScreen(id) || this.shown.delete(id);
  }

  close(): void {
    this.channel.close();
  }
}

function isOnScreen(id: string): boolean {
  const mark = CSS.escape(id);
  return (
    document.visibilityState === "visible" &&
    document.querySelector(`[data-approval="${mark}"], [data-row="${mark}"]`) !== null
  );
}

function after(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
