/** The texts of the page that connects an agent, by the file that shows them. */

// AgentKeyForm
export const NAME_RULE = "Letters, digits, _ and -, at most 58.";
export const keyBelongsTo = "This key is new and belongs to";
export const copyItNow = ". Copy it now: it is not shown again.";
export const copyKey = "Copy key";
export const connectAnotherAgent = "Connect another agent";
export const nameOfAgent = "Name of the agent";
export const nameIsKnownInRules = (rule: string) => `Rules and people know it by this name. ${rule}`;
export const createKey = "Create key";
export const keyIsForThisAgent = "The key works for this agent only. You find and revoke it under";
export const settingsKeys = "Settings, Keys";

// Connect
export const STEPS = ["Server is running", "Connect an agent", "Approve the first call"];
export const connectYourFirstAgent = "Connect your first agent";
export const connectAgent = "Connect an agent";
export const whatToWrap =
  "Wrap the tools that change something. Interlock asks a person before they run, and runs each call at most once.";
export const onlyAdminsCreateKeys =
  "The agent needs a key, and only admins create keys for agents. Ask an admin, and put the key where it says ilk_your_key.";
export const steps = "Steps";
export const chooseWhatNeedsApproval = "Choose what needs approval";
export const inviteReviewers = "Invite reviewers";
export const httpReference = "HTTP reference";
export const skipForNow = "Skip for now";

// FirstCall
export const firstCall = "First call";
export const policyRefusedFirstCall = "The policy refused the first call";
export const changeTheRule = (agent: string) =>
  `The key works. Change the rule that refused it, or let ${agent} call another tool.`;
export const agentHasConnected = (agent: string) => `${agent} has connected`;
export const readsRunWithoutAsking =
  "Calls that only read run without asking. Its first call that changes something appears here.";
export const waitingForFirstCall = "Waiting for the first call…";
export const runYourProgram = "Run your program. The request appears here by itself.";
export const helloFrom = (agent: string) => `Hello from ${agent}`;
export const testRequestFromPage =
  "A test request from the page that connects agents. Nothing runs, whatever you decide.";
export const sendTestRequest = "Send a test request";
export const firstCallNeedsYourApproval = "The first call needs your approval";
export const firstCallIsHere = "The first call is here";
export const callFromAgent = (agent: string) => `From ${agent}`;
export const openRequest = "Open the request";
export const openCall = "Open the call";

// SnippetTabs
export const kindOfAgent = "Kind of agent";
export const addressIsNotEncrypted =
  "This address is not encrypted: everybody between the agent and this server can read the key and the arguments. Use https outside of your own network.";
export const addressIsRefused =
  "This address is not encrypted, and the MCP gate refuses it. Open this page by an https address, and copy from there.";
export const copyWithKey = "Copy with key";
export const copy = "Copy";
export const inACheckout = "In a checkout of Interlock, with the Python of your agent:";
