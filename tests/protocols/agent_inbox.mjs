// The calls that Agent Inbox makes, by the client that it makes them with: each line has a key and steps, which are done
// one after the other, and for each line there is one of what came of them.
import readline from "node:readline";

import { Client } from "@langchain/langgraph-sdk";

const { url } = JSON.parse(process.argv[2]);

const callsOf = (client) => ({
  search: (query) => client.threads.search(query),
  get: (id) => client.threads.get(id),
  state: (id) => client.threads.getState(id),
  resolve: (id, values = null, asNode = "__end__") => client.threads.updateState(id, { values, asNode }),
  run: (id, payload) => client.runs.create(id, "interlock", payload),
  stream: async (id, payload) => {
    const told = [];
    for await (const { event, data } of client.runs.stream(id, "interlock", { streamMode: "events", ...payload }))
      told.push({ event, data });
    return told;
  },
});

async function done({ key, steps }) {
  const calls = callsOf(new Client({ apiUrl: `${url}/agent-inbox`, apiKey: key || null }));
  const results = [];
  for (const [name, ...given] of steps) {
    try {
      results.push({ told: await calls[name](...given) });
    } catch (error) {
      if (error.status === undefined) throw error;
      results.push({ ...JSON.parse(error.text), status: error.status });
    }
  }
  return results;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const told = await done(JSON.parse(line)).catch((error) => ({ failed: String(error.stack) }));
  process.stdout.write(JSON.stringify(told) + "\n");
}
