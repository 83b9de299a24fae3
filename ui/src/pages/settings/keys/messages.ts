/** The texts of the settings of keys, by the file that shows them. */

// KeyForm
export const ROLE_LABELS: Record<string, string> = {
  agent: "agent: proposes calls, decides nothing",
  viewer: "viewer: views, decides nothing",
  reviewer: "reviewer: decides",
  admin: "admin: decides and changes settings",
};
export const EXPIRIES = [
  { value: "30d", label: "after 30 days" },
  { value: "90d", label: "after 90 days" },
  { value: "365d", label: "after a year" },
  { value: "never", label: "never" },
];
export const keyNamed = (name: string) => `Key ${name}`;
export const bearerTokenHint = "The program sends it as a Bearer token.";
export const name = "Name";
export const whatItIsFor = "What it is for.";
export const role = "Role";
export const actsAs = "Acts as";
export const actsAsHint = "Its actions count as this person's.";
export const expires = "Expires";
export const createKey = "Create key";
export const boundToAgent = "Bound to an agent";
export const agent = "Agent";
export const boundAgentHint =
  "The agent's name, as used in rules and grants; separate several with commas. Calls under another name are refused.";
export const unboundKeyWarning =
  "A program with this key may claim any agent's name. Allow rules and grants that name an agent or a person do not apply to it, and it can evade rules that ask or deny by such a name.";
export const actsFor = "Acts for";
export const requesterHint = "Whom the program may name as the requester of its calls.";
export const REQUESTERS = [
  { value: "", label: "not bound: anybody, without proof" },
  { value: "none", label: "nobody: its calls have no requester" },
  { value: "any", label: "any person: the program authenticates its own users" },
];
export const onePerson = "one person";

// KeyList
export const noKeys = "No keys.";
export const revoked = "revoked";
export const expired = "expired";
export const createdBySuffix = (createdBy: string) => `, created by ${createdBy}`;
export const used = "used";
export const neverUsed = "never used";
export const expiresSuffix = (dateTime: string) => `, expires ${dateTime}`;
export const revokeKey = (name: string) => `Revoke ${name}`;
export const keyIsRefused = "Programs with this key are refused at once and permanently.";
export const newKey = "New key";

// KeysTab
export const keys = "Keys";
export const keysHelp = "For agents, and for programs that act as people.";
export const showRevokedAndExpiredKeys = "Show revoked and expired keys";
