import type { Shapes } from "../../../api/client";

type Channel = Shapes["ChannelInfo"];
type Delivery = Shapes["DeliveryInfo"];

/** "slack, for high priority and team finance. People can answer there." */
export function purpose(channel: Channel): string {
  const told = [
    ...channel.priorities.map((priority) => `${priority} priority`),
    ...channel.teams.map((team) => `team ${team}`),
  ];
  const what = channel.kind === "dashboard" ? "Always there" : channel.kind;
  const to = channel.personal ? ", to people one by one" : "";
  const answers =
    channel.answers && channel.kind !== "dashboard" ? ". People can answer there." : told.length ? "." : "";
  return `${what}${to}${told.length ? `, for ${told.join(", ")}` : ""}${answers}`;
}

/** What could not be said yet, up to a thousand. */
export function waiting(due: number): string {
  if (!due) return "Nothing waits to be sent.";
  if (due === 1) return "1 message waits to be sent.";
  return `${due >= 1_000 ? "1,000 or more" : due} messages wait to be sent.`;
}

const REASONS: Record<Delivery["reason"], string> = {
  asked: "asks to decide",
  escalated: "asks more people to decide",
  expired: "says that time ran out",
  woken: "wakes the workflow that waits",
  group: "says how many calls wait",
  test: "is a test",
};

/** "To ada through mail: asks to decide" */
export function message({ person, place, channel, reason }: Delivery): string {
  const to = person ?? place;
  return `${to ? `To ${to} through` : "Through"} ${channel}: ${REASONS[reason]}`;
}
