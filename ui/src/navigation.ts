import { isAdmin, mayDecide, type CurrentUser } from "./api/currentUser";

/** A page in the navigation, and for whom it is. */
interface NavPage {
  to: string;
  name: string;
  for: (me: CurrentUser) => boolean;
  /** Said to those for whom it is not. */
  why?: string;
}

export const NAV_PAGES: NavPage[] = [
  { to: "/chat", name: "Chat", for: mayDecide, why: "Chat is available to reviewers and admins." },
  { to: "/inbox", name: "Inbox", for: everybody },
  { to: "/history", name: "History", for: everybody },
  { to: "/statistics", name: "Statistics", for: everybody },
  { to: "/agents", name: "Agents", for: everybody },
  { to: "/policy", name: "Policy", for: isAdmin, why: "The policy is available to admins." },
  { to: "/settings", name: "Settings", for: everybody },
];

/** The page that an address belongs to. */
export function findNavPage(path: string): NavPage | undefined {
  return NAV_PAGES.find(({ to }) => path === to || path.startsWith(`${to}/`));
}

/** Where one begins: the first page that is for one. */
export function homePath(me: CurrentUser): string {
  return NAV_PAGES.find((way) => way.for(me))?.to ?? "/inbox";
}

function everybody(): boolean {
  return true;
}
