import type { StreamState } from "./live/live";

/** The texts of the frame around the pages, by the file that shows them. */

// navigation
export const chat = "Chat";
export const chatIsForReviewers = "Chat is available to reviewers and admins.";
export const inbox = "Inbox";
export const history = "History";
export const statistics = "Statistics";
export const agents = "Agents";
export const content = "Content";
export const okrs = "OKRs";
export const policy = "Policy";
export const policyIsForAdmins = "The policy is available to admins.";
export const settings = "Settings";

// Shell
export const CONNECTION_LABELS: Record<StreamState, [name: string, text: string]> = {
  live: ["Live", "This page is up to date."],
  connecting: ["Connecting", "Connecting to Interlock."],
  offline: ["Offline", "Offline. Reconnecting… This page may be outdated."],
  "signed out": ["Signed out", "Your session has ended. Sign in again to continue."],
};
export const skipToContent = "Skip to content";
export const pages = "Pages";
export const interlock = "interlock";
export const pending = "pending";
export const noAccess = "You do not have access to this page";
export const yourRoleIs = (reason: string, role: string) =>
  `${reason} Your role is ${role}; an admin can change it.`;
