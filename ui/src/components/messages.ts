import type { RiskLevel } from "./RiskMark";

/** The texts of the shared components, by the file that shows them. */

// Confirm
export const cancel = "Cancel";

// CopyButton
export const copied = "Copied";

// Dialog
export const close = "Close";

// ErrorBoundary
export const thisPageCouldNotBeLoaded = "This page could not be loaded";
export const thisPageFailed = "This page failed";
export const probablyUpdated =
  "Interlock was probably updated since you opened it. Reload to get the new version.";
export const anErrorStoppedThisPage =
  "An error stopped this page. Nothing was decided or sent. Reload the page. If it fails again, report this error to the operator of this server:";
export const reload = "Reload";

// expiry
export const SETTINGS: Record<string, string> = {
  chat: "in a chat",
  paused: "while a run is paused",
  queue: "in a queue",
};

// FreezeBanner
export const frozenScope = (scope: string, name: string) => `The ${scope} ${name}`;
export const thisWorkspace = "This workspace";

// NewPasswordInput
export const tooShortMoreCharacters = (missing: number) =>
  `Too short: ${missing} more ${missing === 1 ? "character" : "characters"}.`;

// NotFound
export const pageNotFound = "Page not found";
export const thereIsNoPage = "There is no page at this address. Check it for typing errors, or go to the";
export const inbox = "inbox";

// PageTitle
export const interlock = "Interlock";

// RiskMark
export const LABELS: Record<RiskLevel, string> = {
  low: "Low risk",
  medium: "Medium risk",
  high: "High risk",
  destructive: "Destructive",
  question: "Question",
};

// SignedOutNotice
export const youAreSignedOut = "You are signed out. Your input on this page is kept.";
export const signInAgainInNewTab = "Sign in again (opens in a new tab)";

// States
export const requestFailed = "Request failed";
export const tryAgain = "Try again";
export const somebodyElseChangedThis = "Somebody else changed this";

// TimeAgo
export const timeAgo = (seconds: number, span: string) => (seconds < 1 ? "now" : `${span} ago`);
