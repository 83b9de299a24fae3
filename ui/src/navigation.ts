import { isAdmin, mayDecide, type CurrentUser } from "./api/currentUser";

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
    name: "Chat",
    isAllowed: mayDecide,
    deniedReason: "Chat is available to reviewers and admins.",
  },
  { to: "/inbox", name: "Inbox", isAllowed: everybody },
  { to: "/history", name: "History", isAllowed: everybody },
  { to: "/statistics", name: "Statistics", isAllowed: everybody },
  { to: "/agents", name: "Agents", isAllowed: everybody },
  { to: "/content", name: "Content", isAllowed: everybody },
  { to: "/okrs", name: "OKRs", isAllowed: everybody },
  { to: "/policy", name: "Policy", isAllowed: isAdmin, deniedReason: "The policy is available to admins." },
  { to: "/settings", name: "Settings", isAllowed: everybody },
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
