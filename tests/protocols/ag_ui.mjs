// The published client of AG-UI, as it is: one command per line, and for each what the client made of the answer.
import readline from "node:readline";

import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const job = JSON.parse(process.argv[2]);
const agents = new Map();
const logged = [];
for (const name of ["warn", "error", "log", "info"]) console[name] = (...words) => logged.push([name, words.map(String).join(" ")]);

function agentOf({ name, threadId, path = "/ag-ui/scripted", key = job.key }) {
  if (!agents.has(name)) {
    const held = { raw: [] };
    held.agent = new HttpAgent({
      url: job.url + path,
      headers: { authorization: `Bearer ${key}` },
      threadId,
      fetch: async (url, init) => {
        held.sent = JSON.parse(init.body);
        const answer = await fetch(url, init);
        held.raw.push(answer.clone().text());
        return answer;
      },
    });
    agents.set(name, held);
  }
  return agents.get(name);
}

async function run(command) {
  const held = agentOf(command);
  const { agent } = held;
  if (command.state) agent.setState(command.state);
  if (command.messages) agent.setMessages(command.messages);
  if (command.say) agent.addMessage({ id: command.id ?? crypto.randomUUID(), role: "user", content: command.say });
  if (command.append) agent.addMessages(command.append);
  const resume = command.answers ? buildResumeArray(agent.pendingInterrupts, command.answers) : command.resume;
  const events = [];
  logged.length = held.raw.length = 0;
  let error = null;
  try {
    await agent.runAgent({ ...command.more, ...(resume ? { resume } : {}) }, { onEvent: ({ event }) => void events.push(event) });
  } catch (failed) {
    error = { message: failed.message, status: failed.status ?? null, payload: failed.payload ?? null };
  }
  const raw = (await Promise.all(held.raw)).join("");
  const { messages, state, pendingInterrupts: interrupts } = agent;
  return { events, error, raw, messages, state, interrupts, console: [...logged], sent: held.sent ?? null };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + "\n");
}
