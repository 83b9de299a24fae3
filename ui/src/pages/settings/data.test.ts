import { describe, expect, it } from "vitest";
import { Refused } from "../../api/client";
import { deputies } from "./away_form";
import { isAway, localInput, namesIn, problemAt, reachable, teamsOf, type PersonInfo } from "./data";

const person = (name: string, teams: string[] = [], until?: string): PersonInfo => ({
  name,
  role: "reviewer",
  teams,
  email: null,
  away: until ? { until, users: ["bob"], teams: [] } : null,
});

describe("people", () => {
  it("reads names between commas, each once", () => {
    expect(namesIn(" finance, leads,,finance , ")).toEqual(["finance", "leads"]);
  });

  it("knows the teams by those who are in them", () => {
    expect(teamsOf([person("ann", ["leads", "finance"]), person("bob", ["finance"])])).toEqual([
      "finance",
      "leads",
    ]);
  });

  it("counts somebody as away until the time comes", () => {
    expect(isAway(person("ann", [], new Date(Date.now() + 60_000).toISOString()))).toBe(true);
    expect(isAway(person("ann", [], new Date(Date.now() - 60_000).toISOString()))).toBe(false);
    expect(isAway(person("ann"))).toBe(false);
  });

  it.each([
    [{ users: ["bob"], teams: [] }, "bob decides meanwhile."],
    [{ users: ["bob", "eve"], teams: ["finance"] }, "bob, eve and the team finance decide meanwhile."],
    [{ users: [], teams: [] }, "Nobody decides in this place."],
  ])("says who decides meanwhile: %j", (away, said) => {
    expect(deputies(away)).toBe(said);
  });
});

it("writes a moment as the clock on the wall shows it", () => {
  const moment = new Date(2027, 0, 31, 18, 5);
  expect(localInput(moment)).toBe("2027-01-31T18:05");
});

it("finds what the server says about a field", () => {
  const refused = new Refused(400, "invalid_request", "No.", {
    problems: [{ pointer: "/when", message: "This is no condition." }],
  });
  expect(problemAt(refused, "/when")).toBe("This is no condition.");
  expect(problemAt(refused, "/tool")).toBeUndefined();
  expect(problemAt(null, "/when")).toBeUndefined();
});

it.each([
  ["http://0.0.0.0:8321/welcome#abc", "https://here.example/welcome#abc"],
  ["http://127.0.0.1:0/welcome#abc", "https://here.example/welcome#abc"],
  ["http://[::]:8321/welcome#abc", "https://here.example/welcome#abc"],
  ["https://interlock.example/welcome#abc", "https://interlock.example/welcome#abc"],
])("makes of %s a link that others can open", (made, given) => {
  expect(reachable(made, "https://here.example")).toBe(given);
});
