import { describe, expect, it } from "vitest";
import { describeDeputies } from "./AwayForm";
import {
  describeKeyBinding,
  describeRemoval,
  isActiveKey,
  isAway,
  listTeams,
  reachableUrl,
  splitNames,
  toLocalInput,
  type KeyInfo,
  type PersonInfo,
} from "./data";

const key = (more: Partial<KeyInfo> = {}): KeyInfo => ({
  id: "ilk_aaaaaaaa",
  name: "office",
  role: "agent",
  user: null,
  agents: [],
  tools: [],
  requester: null,
  per_minute: null,
  pending: null,
  created_by: "ada",
  created_at: "2027-01-01T00:00:00Z",
  used_at: null,
  expires_at: null,
  revoked_at: null,
  rotated_from: null,
  ...more,
});

describe("keys", () => {
  it.each([
    [key(), "not bound to an agent"],
    [key({ agents: ["office"], requester: "none" }), "bound to office; for nobody"],
    [
      key({ agents: ["a", "b"], tools: ["mail_*"], requester: "any" }),
      "bound to a, b; tools mail_*; for any requester",
    ],
    [key({ requester: "bob", user: "bob" }), "not bound to an agent; for bob"],
    [
      key({ agents: ["office"], per_minute: 1500, pending: 0 }),
      "bound to office; 1,500 calls a minute; any number of pending calls",
    ],
    [key({ role: "viewer", user: "bob" }), "as bob"],
    [key({ role: "viewer", user: "office" }), ""],
  ])("describes the binding of a key", (info, said) => {
    expect(describeKeyBinding(info)).toBe(said);
  });

  it("treats a key as active until it is revoked or expires", () => {
    const now = Date.parse("2027-01-02T00:00:00Z");
    expect(isActiveKey(key(), now)).toBe(true);
    expect(isActiveKey(key({ expires_at: "2027-01-02T00:00:01Z" }), now)).toBe(true);
    expect(isActiveKey(key({ expires_at: "2027-01-02T00:00:00Z" }), now)).toBe(false);
    expect(isActiveKey(key({ revoked_at: "2027-01-01T00:00:00Z" }), now)).toBe(false);
  });
});

describe("a removal", () => {
  it("lists only what ends", () => {
    const none = { grants: [], keys: [], sessions: 0, links: 0, identities: 0, votes: [], delegations: [] };
    const ended = {
      ...none,
      away: ["eve"],
      made_keys: [],
      keys: [{ id: "ilk_a", name: "laptop" }],
      votes: ["1"],
    };
    expect(describeRemoval(ended)).toEqual([
      "Keys: laptop",
      "Votes in pending approvals: 1",
      "Delegate of: eve",
    ]);
    expect(describeRemoval({ ...none, away: [], made_keys: [] })).toEqual([]);
  });
});

const person = (name: string, teams: string[] = [], until?: string): PersonInfo => ({
  name,
  role: "reviewer",
  teams,
  email: null,
  away: until ? { until, users: ["bob"], teams: [] } : null,
});

describe("people", () => {
  it("splits names at commas, each once", () => {
    expect(splitNames(" finance, leads,,finance , ")).toEqual(["finance", "leads"]);
  });

  it("lists the teams that have members", () => {
    expect(listTeams([person("ann", ["leads", "finance"]), person("bob", ["finance"])])).toEqual([
      "finance",
      "leads",
    ]);
  });

  it("treats a person as away until the end of the absence", () => {
    expect(isAway(person("ann", [], new Date(Date.now() + 60_000).toISOString()))).toBe(true);
    expect(isAway(person("ann", [], new Date(Date.now() - 60_000).toISOString()))).toBe(false);
    expect(isAway(person("ann"))).toBe(false);
  });

  it.each([
    [{ users: ["bob"], teams: [] }, "Delegate: bob."],
    [{ users: ["bob", "eve"], teams: ["finance"] }, "Delegates: bob, eve and the team finance."],
    [{ users: [], teams: [] }, "No delegates."],
  ])("names the delegates: %j", (away, said) => {
    expect(describeDeputies(away)).toBe(said);
  });
});

it("formats a date in local time", () => {
  const moment = new Date(2027, 0, 31, 18, 5);
  expect(toLocalInput(moment)).toBe("2027-01-31T18:05");
});

it.each([
  ["http://0.0.0.0:8321/welcome#abc", "https://here.example/welcome#abc"],
  ["http://127.0.0.1:0/welcome#abc", "https://here.example/welcome#abc"],
  ["http://[::]:8321/welcome#abc", "https://here.example/welcome#abc"],
  ["https://interlock.example/welcome#abc", "https://interlock.example/welcome#abc"],
])("makes %s reachable for others", (made, given) => {
  expect(reachableUrl(made, "https://here.example")).toBe(given);
});
