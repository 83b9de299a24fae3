import { expect, it } from "vitest";
import { changedFields, initialValues } from "./AgentDescription";
import type { AgentInfo } from "./queries";

const agent = {
  model: "",
  instructions: "Use few words.",
  tools: ["cms", "okr_list_*"],
  agents: [],
  limits: { turns: 20, time: "10m" },
} as unknown as AgentInfo;

it("sends no unchanged field", () => {
  expect(changedFields(initialValues(agent), agent)).toEqual({});
});

it("sends changed fields as the API names them", () => {
  const filled = { ...initialValues(agent), tools: "cms\n\n  okr, http_get", turns: "", tokens: "9000" };
  expect(changedFields(filled, agent)).toEqual({
    tools: ["cms", "okr", "http_get"],
    limits: { tokens: 9000, time: "10m" },
  });
});

it("leaves it to the server to refuse a limit that is not a number", () => {
  expect(changedFields({ ...initialValues(agent), turns: "many" }, agent).limits).toEqual({
    turns: "many",
    time: "10m",
  });
});
