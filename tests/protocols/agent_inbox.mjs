// The calls that Agent Inbox makes, by the client that it makes them with, one after the other; what came of each.
import { Client } from "@langchain/langgraph-sdk";

const { url, key, steps } = JSON.parse(process.argv[2]);
const client = new Client({ apiUrl: `${url}/agent-inbox`, apiKey: key || null });

const calls = {
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
};

const results = [];
for (const [name, ...given] of steps) {
  try {
    results.push({ told: await calls[name](...given) });
  } catch (error) {
    if (error.status === undefined) throw error;
    results.push({ ...JSON.parse(error.text), status: error.status });
  }
}
console.log(JSON.stringify(results));
