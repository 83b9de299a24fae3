import { isAdmin, mayDecide, type CurrentUser } from "./api/currentUser";
import * as messages from "./messages";

/** A page in the navigation, and who may open it. */
interface NavPage {
  to: string;
  name: string;
  isAllowed: (me: CurrentUser) => boolean;
  /** Shown to users without access. */
  deniedReason?: string;
}

export const NAV_PAGES: NavPage[] = [
  {
    to: "/chat",
    name: messages.chat,
    isAllowed: mayDecide,
    deniedReason: messages.chatIsForReviewers,
  },
  { to: "/inbox", name: messages.inbox, isAllowed: everybody },
  { to: "/history", name: messages.history, isAllowed: everybody },
  { to: "/statistics", name: messages.statistics, isAllowed: everybody },
  { to: "/agents", name: messages.agents, isAllowed: everybody },
  { to: "/content", name: messages.content, isAllowed: everybody },
  { to: "/okrs", name: messages.okrs, isAllowed: everybody },
  { to: "/policy", name: messages.policy, isAllowed: isAdmin, deniedReason: messages.policyIsForAdmins },
  { to: "/settings", name: messages.settings, isAllowed: everybody },
];

/** The page that a path belongs to. */
export function findNavPage(path: string): NavPage | undefined {
  const place = path === "/connect" ? "/agents" : path; // it is opened from there
  return NAV_PAGES.find(({ to }) => place === to || place.startsWith(`${to}/`));
}

/** The first page that the user may open; the inbox where the chat has no model. */
export function homePath(me: CurrentUser, canAnswer = true): string {
  if (!canAnswer) return "/inbox";
  return NAV_PAGES.find((page) => page.isAllowed(me))?.to ?? "/inbox";
}

function everybody(): boolean {
  return true;
}
