// Linear's own SDK against a stand-in: does what the pack's tools do, and prints what came of each step as JSON.
// node linear_sdk.mjs FOLDER URL
import { randomUUID } from 'node:crypto';

const [folder, apiUrl] = process.argv.slice(2);
const { LinearClient } = await import(`${folder}/node_modules/@linear/sdk/dist/index.mjs`);
const client = new LinearClient({ apiKey: 'lin_api_demo', apiUrl });
const id = randomUUID();
const names = (page) => page.nodes.map((node) => node.name);
const identifiers = (page) => page.nodes.map((node) => node.identifier);
const refusal = async (work) => {
  try {
    return await work();
  } catch (error) {
    return [error.constructor.name, error.errors[0].message.replace(id, 'ID')];
  }
};

let team, label, issue, cycle;
const steps = {
  viewer: async () => (await client.viewer).name,
  team: async () => (team = (await client.teams({ filter: { key: { eq: 'DEMO' } } })).nodes[0]).name,
  states: async () => names(await client.workflowStates({ filter: { team: { id: { eq: team.id } } } })).sort(),
  label: async () => (label = (await client.issueLabels({ filter: { name: { eqIgnoreCase: 'docs' } } })).nodes[0]).name,
  users: async () => names(await client.users({ filter: { email: { eq: 'grace@demo.example' } } })),
  issues: async () => identifiers(await client.issues({ first: 3 })),
  search: async () => identifiers(await client.searchIssues('cart tabs')),
  create: async () => (issue = await (await client.createIssue({ id, teamId: team.id, title: 'New' })).issue).identifier,
  again: () => refusal(() => client.createIssue({ id, teamId: team.id, title: 'New' })),
  update: async () => (await client.updateIssue(issue.id, { title: 'Changed', priority: 1 })).success,
  labelled: async () => (await client.issueAddLabel(issue.id, label.id)).success,
  comment: async () => (await (await client.createComment({ issueId: issue.id, body: 'Hello' })).comment).body,
  project: async () => (await (await client.createProject({ name: 'Search', teamIds: [team.id] })).project).name,
  cycle: async () => {
    const dates = { startsAt: new Date('2026-12-01'), endsAt: new Date('2026-12-14') };
    cycle = await (await client.createCycle({ teamId: team.id, ...dates })).cycle;
    return cycle.number;
  },
  renamed: async () => (await (await client.updateCycle(cycle.id, { name: 'Last' })).cycle).name,
  read: async () => {
    const found = await client.issue(issue.identifier);
    return [found.title, found.priorityLabel, (await found.state).name, names(await found.labels())];
  },
  deleted: async () => (await client.deleteIssue(issue.id)).success,
  missing: () => refusal(() => client.issue('DEMO-99')),
  wrongKey: () => refusal(() => new LinearClient({ accessToken: 'lin_api_demo', apiUrl }).viewer),
};
const told = {};
for (const [name, step] of Object.entries(steps)) told[name] = await step();
console.log(JSON.stringify(told));
