import type { NotificationState } from "../../../live/notifications";

/** The texts of the settings of the user, by the file that shows them. */

// ConfirmIdentity
export const isThisYouIn = (channel: string) => `Is this you in ${channel}?`;
export const isThisYou = "Is this you?";
export const ownerOf = "The owner of";
export const inWillDecideAs = (channel: string) => `in ${channel} will decide as`;
export const belongsToSomebodyElse = "This account belongs to somebody else";
export const belongsTo = (known: string) => `It belongs to ${known}. They or an admin must remove it first.`;
export const onlyIfYouRequestedThisLink = "Only if you requested this link";
export const sayYesIf = (channel: string) =>
  `Say yes if you pressed a button in ${channel} a moment ago and got this link in response. If anybody sent it to you, say no: it would let them decide in your name.`;
export const yesThisIsMe = "Yes, this is me";
export const no = "No";

// MeTab
export const STATE_LABELS: Record<NotificationState, string> = {
  on: "On in this browser, for approvals that need your decision and are not visible on any of your screens.",
  off: "Off in this browser.",
  denied: "Blocked by this browser. Allow notifications for this site in its settings, then return here.",
  impossible: "This browser does not support notifications here.",
};
export const youInWorkspace = (name: string, role: string, workspace: string) =>
  `You are ${name}, ${role} in the workspace ${workspace}`;
export const teamsSuffix = (teams: string) => `, teams ${teams}`;
export const outOfOffice = "Out of office";
export const outOfOfficeHelp =
  "While you are away, your delegates decide on your behalf. The ledger records who voted, and on whose behalf.";
export const appearance = "Appearance";
export const system = "System";
export const light = "Light";
export const dark = "Dark";
export const password = "Password";
export const newPasswordHint = "At least 12 characters. A new password ends all of your other sessions.";
export const currentPassword = "Current password";
export const newPassword = "New password";
export const passwordChanged = "Your password was changed. Your other sessions were ended.";
export const changePassword = "Change password";
export const sessions = "Sessions";
export const sessionsEndAfterSevenDays = "Sessions end after seven days.";
export const signOutEverywhere = "Sign out everywhere";
export const signOutEverywhereHelp =
  "Every browser in which you are signed in, including this one, will ask you to sign in again. Your own keys are revoked.";
export const linkedAccounts = "Linked accounts";
export const linkedAccountsHelp =
  "Channel accounts with which you can decide. To link one, press a button in a message there and follow the link that you get.";
export const myKeys = "My keys";
export const myKeysHelp =
  "For programs that act as you, over the HTTP API or the command line. They are revoked when you change your password or sign out everywhere.";
export const notifications = "Notifications";
export const notificationsHelp =
  "They name the tool and the requester, never the arguments. A click opens the approval.";
export const turnOnNotifications = "Turn on notifications";
export const turnOffNotifications = "Turn off notifications";
