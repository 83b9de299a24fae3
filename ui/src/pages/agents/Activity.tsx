import { Anchor, Button, Paper, Stack, Text, Title } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import type { AgentActivityDetails } from "../../api/activity";
import { escapeInvisible } from "../../components/escapeInvisible";
import { TimeAgo } from "../../components/TimeAgo";
import { countText, describeUse, percentText, type ToolActivity } from "./activity";
import css from "./Agents.module.css";
import { COUNTED_DAYS } from "./queries";

const NEWEST = 5; // tools that are shown at first

/** What one agent did in the last days: figures, calls per day, and the tools that it used. */
export function Activity({ activity }: { activity: AgentActivityDetails }) {
  return (
    <>
      <Figures activity={activity} />
      {activity.calls > 0 && <Days activity={activity} />}
      <UsedTools tools={activity.tools} />
    </>
  );
}

/** "first seen 3 d ago, last seen 2 min ago" */
export function Seen({ activity }: { activity: AgentActivityDetails }) {
  const { first_seen_at, last_seen_at } = activity;
  if (!first_seen_at && !last_seen_at) return "No calls yet";
  return (
    <>
      {first_seen_at && (
        <>
          First seen <TimeAgo at={first_seen_at} />
        </>
      )}
      {first_seen_at && last_seen_at && " · "}
      {last_seen_at && (
        <>
          last seen <TimeAgo at={last_seen_at} />
        </>
      )}
    </>
  );
}

function Figures({ activity }: { activity: AgentActivityDetails }) {
  const { name, pending, calls, asked, rejected, denied, complete } = activity;
  const figures: [label: string, value: ReactNode, about: string][] = [
    [
      "Pending",
      pending > 0 ? (
        <Anchor component={Link} href={`/inbox?agent=${encodeURIComponent(name)}`} inherit underline="always">
          {pending.toLocaleString("en")}
        </Anchor>
      ) : (
        0
      ),
      "now",
    ],
    [`Calls, ${COUNTED_DAYS} days`, `${calls.toLocaleString("en")}${complete ? "" : "+"}`, "without reads"],
    ["Asked a person", percentText(asked, calls), countText(asked, "call")],
    [
      "Refused",
      (rejected + denied).toLocaleString("en"),
      `${rejected.toLocaleString("en")} by people, ${denied.toLocaleString("en")} by the policy`,
    ],
  ];
  return (
    <Paper withBorder component="dl" className={css.figures} data-figures>
      {figures.map(([label, value, about]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd className={css.figure}>{value}</dd>
          <dd className={css.aboutFigure}>{about}</dd>
        </div>
      ))}
    </Paper>
  );
}

function Days({ activity: { days, calls, asked } }: { activity: AgentActivityDetails }) {
  const most = Math.max(1, ...days.map((day) => day.calls));
  const busiest = days.find((day) => day.calls === most);
  const date = (at: string) =>
    new Date(at).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
  const says = `${countText(calls, "call")}, ${asked.toLocaleString("en")} of them asked a person. ${
    busiest ? `Most on ${date(busiest.at)}: ${most.toLocaleString("en")}.` : ""
  }`;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="days">
      <Stack gap="xs">
        <Title order={2} size="h4" id="days">
          Calls per day
        </Title>
        <Text size="sm">{says}</Text>
        <div className={css.days} role="img" aria-label={says}>
          {days.map((day) => (
            <span key={day.at} title={`${date(day.at)}: ${countText(day.calls, "call")}, ${day.asked} asked`}>
              <i className={css.free} style={{ height: `${((day.calls - day.asked) / most) * 100}%` }} />
              <i className={css.asked} style={{ height: `${(day.asked / most) * 100}%` }} />
            </span>
          ))}
        </div>
        <div className={css.axis} aria-hidden="true">
          <span>{date(days[0]?.at ?? "")}</span>
          <span className={css.legend}>
            <i className={css.asked} /> asked a person <i className={css.free} /> ran without asking
          </span>
          <span>{date(days.at(-1)?.at ?? "")}</span>
        </div>
        <details className={css.fold}>
          <summary>
            <Text component="span" size="sm">
              Show as table
            </Text>
          </summary>
          <table className={css.dayTable}>
            <thead>
              <tr>
                <th scope="col">Day (UTC)</th>
                <th scope="col">Calls</th>
                <th scope="col">Asked a person</th>
              </tr>
            </thead>
            <tbody>
              {days
                .filter((day) => day.calls > 0)
                .map((day) => (
                  <tr key={day.at}>
                    <td>{date(day.at)}</td>
                    <td>{day.calls.toLocaleString("en")}</td>
                    <td>{day.asked.toLocaleString("en")}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </details>
      </Stack>
    </Paper>
  );
}

/** The tool that the agent began to use last comes first: a new one deserves a look. */
function UsedTools({ tools }: { tools: ToolActivity[] }) {
  const [showsAll, setShowsAll] = useState(false);
  if (!tools.length) return null;
  const shown = showsAll ? tools : tools.slice(0, NEWEST);
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="used">
      <Title order={2} size="h4" id="used">
        Tools it has used
      </Title>
      <Text size="sm" c="dimmed">
        Tools by first use, newest first. Outcomes of the last {COUNTED_DAYS} days.
      </Text>
      <ul className={css.plain} aria-label="Tools it has used">
        {shown.map((tool) => (
          <li key={tool.tool} className={css.used} data-used={tool.tool}>
            <div className={css.who}>
              <Text ff="monospace" fw={600}>
                {escapeInvisible(tool.tool)}
              </Text>
              <Text size="sm" c="dimmed">
                {describeUse(tool)}
              </Text>
            </div>
            <Outcomes tool={tool} />
            <Text size="sm" c="dimmed" className={css.firstUse}>
              {tool.first_used_at ? (
                <>
                  first used <TimeAgo at={tool.first_used_at} />
                </>
              ) : (
                "first use not recorded"
              )}
            </Text>
          </li>
        ))}
      </ul>
      {tools.length > NEWEST && !showsAll && (
        <Button variant="default" mt="xs" onClick={() => setShowsAll(true)}>
          Show all {tools.length.toLocaleString("en")} tools
        </Button>
      )}
    </Paper>
  );
}

/** A bar of what people decided; the same is said in words beside it. */
function Outcomes({ tool: { approved, edited, rejected } }: { tool: ToolActivity }) {
  const whole = approved + edited + rejected;
  return (
    <span className={css.outcomes} aria-hidden="true">
      {whole > 0 &&
        Object.entries({ approved, edited, rejected }).map(([kind, count]) => (
          <i key={kind} data-kind={kind} style={{ flexGrow: count }} />
        ))}
    </span>
  );
}
