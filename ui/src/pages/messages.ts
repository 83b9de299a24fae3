/** The texts of the page of one approval, by the file that shows them. */

// In more than one file
export const notifications = "Notifications";

// ApprovalPage
export const inbox = "Inbox";
export const approval = "Approval";
export const inWorkspaceSuffix = (workspace: string) => ` in the workspace ${workspace}`;
export const thisLinkIsFor = (person: string, workspaceSuffix: string) =>
  `This link is for ${person}${workspaceSuffix}`;
export const youAreSignedInAs = (name: string) =>
  `You are signed in as ${name}. A decision you make here is recorded as yours.`;

// DeliveryList
export const queued = "queued";
export const sending = "sending";
export const upToDate = "up to date";
export const failedDeadLetter = "failed, dead letter";
export const noLongerNeeded = "no longer needed";
export const sentInBatch = "sent in a batch";
export const noNotificationsWereSent = "No notifications were sent. The approval is in the inbox.";
export const sent = "sent";
