/** The texts of the statistics, by the file that shows them. */

// In more than one file
export const requested = "Requested";
export const refusedDecisions = "Refused decisions";

// Plots
export const outcomesByTool = "Outcomes by tool";
export const tool = "Tool";
export const outcomesByAgent = "Outcomes by agent";
export const agent = "Agent";
export const countNow = (count: string) => `${count} now`;
export const pendingOverTime = "Pending over time";
export const from = "From";
export const pendingAtEnd = "Pending at the end";
export const pending = "Pending";
export const timeToDecide = "Time to decide";
export const decisions = "Decisions";
export const medianP50 = "Median (p50)";
export const percentile95WithSign = "95th percentile (p95)";
export const p50 = "p50";
export const p95 = "p95";
export const total = "Total";
export const mostAreWaitingFor = (on: string, pending: number, duration: string) =>
  `Most are waiting for ${on}: ${pending}, the oldest for ${duration}.`;
export const pendingByApprover = "Pending by approver";
export const pendingByApproverHelp = (most: string) =>
  `Pending calls by the people or teams who must decide next. ${most}`;
export const approver = "Approver";
export const calls = "Calls";
export const oldest = "Oldest";
export const agents = "Agents";
export const pendingCalls = "Pending calls";
export const pendingAndOldest = (pending: number, duration: string) =>
  `${pending.toLocaleString("en")}, oldest ${duration}`;
export const refused = "Refused";
export const refusedHelp = "Decisions that were refused, and calls that the policy denied.";
export const deniedCalls = "Denied calls";
export const allowedReads = "Allowed reads";
export const allowedReadsHelp = "Reads that ran without approval, by tool.";
export const reads = "Reads";
export const noDataSentence = "No data in this period.";
export const showAsTable = "Show as table";
export const asTable = (title: string) => `${title}, as a table`;

// Statistics
export const RANGES = [
  { value: "1", label: "24 hours" },
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
];
export const period = "Period";
export const statistics = "Statistics";
export const loadingStatistics = "Loading statistics";
export const noData = "No data in this period";
export const show90Days = "Show 90 days";
export const connectAgent = "Connect an agent";
export const chartsAppear = "Charts appear once agents request approvals.";
export const pendingNow = "Pending now";
export const decidedByPeople = "Decided by people";
export const medianTimeToDecide = "Median time to decide";
export const percentile95 = "95th percentile";
export const tooMuchData = (dateTime: string) =>
  `There is too much data: only events after ${dateTime} are counted.`;

// statsHistory
export const approved = "Approved";
export const approvedWithChanges = "Approved with changes";
export const answered = "Answered";
export const rejected = "Rejected";
export const expired = "Expired";
export const cancelled = "Cancelled";
export const allowedWithoutApproval = "Allowed without approval";
export const milliseconds = (count: number) => `${count} ms`;
export const noCallWaited = "No call waited at the end of any interval.";
export const nowMostInThisPeriod = (now: number) =>
  `${now.toLocaleString("en")} now, the most in this period.`;
export const atMostThenNow = (most: number, time: string | undefined, now: number) =>
  `At most ${most.toLocaleString("en")}, ${time}; ${now.toLocaleString("en")} now.`;
export const nobodyDecidedInThisPeriod = "Nobody decided in this period.";
export const decidedWithin = (duration: string, duration2: string) =>
  `Half are decided within ${duration}, 95 % within ${duration2}.`;
export const mostAreRejected = (name: string, rejected: number, total: number) =>
  `Most calls of ${name} are rejected: ${rejected.toLocaleString("en")} of ${total.toLocaleString("en")}.`;
export const peopleApproved = (name: string, approved: number, total: number) =>
  `By ${name}: people approved ${approved.toLocaleString("en")} of the ${total.toLocaleString("en")} calls that ended.`;
export const anyReviewer = "Any reviewer";
export const teamNamed = (name: string) => `Team ${name}`;
export const agentPending = (agent: string, pending: number) => `${agent || "(no name)"} ${pending}`;
