/** The texts of the settings of channels, by the file that shows them. */

// ChannelRow
export const defaultLabel = "default";
export const disabled = "disabled";
export const disabledSince = "Disabled";
export const lastNotification = "Last notification";
export const noNotificationSentYet = "No notification sent yet. ";
export const oldestIsFrom = "The oldest is from";
export const enableChannel = (name: string) => `Enable ${name}`;
export const sendTestTo = (name: string) => `Send a test to ${name}`;
export const sendTest = "Send a test";
export const testWasSentTo = (person: string) => `A test was sent to ${person}.`;
export const testWasSent = "A test was sent.";
export const priorityRoute = (priority: string) => `${priority} priority`;
export const teamRoute = (team: string) => `team ${team}`;
export const alwaysAvailable = "Always available";
export const toEachPersonIndividually = ", to each person individually";
export const peopleCanAnswer = ". People can answer there.";
export const purpose = (kind: string, to: string, count: number, routes: string, answers: string) =>
  `${kind}${to}${count ? `, for ${routes}` : ""}${answers}`;
export const noMessagesQueued = "No messages queued.";
export const oneMessageQueued = "1 message queued.";
export const messagesQueued = (due: number) => `${due >= 1_000 ? "1,000 or more" : due} messages queued.`;
export const requestForDecision = "request for a decision";
export const escalation = "escalation";
export const expiryNotice = "expiry notice";
export const resumesWorkflow = "resumes a workflow";
export const numberOfPendingCalls = "number of pending calls";
export const test = "test";
export const deliveryVia = (to: string | null, channel: string, reason: string) =>
  `${to ? `To ${to} via` : "Via"} ${channel}: ${reason}`;

// ChannelsTab
export const channels = "Channels";
export const onlyDashboard = (keys: string) =>
  `Only the dashboard (this web app) is configured for this workspace. Configure others in interlock.yaml on the server, under ${keys}.`;
export const channelsHelp =
  "How people in this workspace are notified. Channels are configured in interlock.yaml on the server and cannot be changed here.";
export const linkedAccounts = "Linked accounts";
export const linkedAccountsHelp =
  "The user that each channel account belongs to. Decisions made with an account count as that user's.";
export const channelsAndRouting = "channels and routing";
export const settingsOfWorkspace = (workspace: string) => `workspaces: ${workspace}: channels and routing`;
export const deadLetters = "Dead letters";
export const deadLettersHelp =
  "Messages that were refused, or could not be sent for a day. The approvals themselves are still in the inbox.";
export const noDeadLetters = "No dead letters.";
export const showMore = "Show more";
export const created = "Created";
export const about = ", about ";
export const thisApproval = "this approval";
export const retry = "Retry";
