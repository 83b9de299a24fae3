import { isAdmin, mayDecide, type Myself } from "./api/me";

/** A page in the navigation, and for whom it is. */
export interface Way {
  to: string;
  name: string;
  for: (me: Myself) => boolean;
  /** Said to those for whom it is not. */
  why?: string;
}

export const WAYS: Way[] = [
  { to: "/chat", name: "Chat", for: mayDecide, why: "Chatting with an agent is for reviewers and admins." },
  { to: "/inbox", name: "Inbox", for: everybody },
  { to: "/history", name: "History", for: everybody },
  { to: "/statistics", name: "Statistics", for: everybody },
  { to: "/agents", name: "Agents", for: everybody },
  { to: "/policy", name: "Policy", for: isAdmin, why: "The policy is for admins." },
  { to: "/settings", name: "Settings", for: everybody },
];

/** The page that an address belongs to. */
export function wayOf(path: string): Way | undefined {
  return WAYS.find(({ to }) => path === to || path.startsWith(`${to}/`));
}

/** Where one begins: the first page that is for one. */
export function homeOf(me: Myself): string {
  return WAYS.find((way) => way.for(me))?.to ?? "/inbox";
}

function everybody(): boolean {
  return true;
}
