import { Anchor, Button, Paper, Stack, Text, Title } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import type { AgentActivityDetails } from "../../api/activity";
import { escapeInvisible } from "../../components/escapeInvisible";
import { TimeAgo } from "../../components/TimeAgo";
import { countText, describeUse, percentText, type ToolActivity } from "./activity";
import css from "./Agents.module.css";
import * as messages from "./detailMessages";
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
  if (!first_seen_at && !last_seen_at) return messages.noCallsYet;
  return (
    <>
      {first_seen_at && (
        <>
          {messages.firstSeen} <TimeAgo at={first_seen_at} />
        </>
      )}
      {first_seen_at && last_seen_at && " · "}
      {last_seen_at && (
        <>
          {messages.lastSeen} <TimeAgo at={last_seen_at} />
        </>
      )}
    </>
  );
}

function Figures({ activity }: { activity: AgentActivityDetails }) {
  const { name, pending, calls, asked, rejected, denied, complete } = activity;
  const figures: [label: string, value: ReactNode, about: string][] = [
    [
      messages.pendingHeading,
      pending > 0 ? (
        <Anchor component={Link} href={`/inbox?agent=${encodeURIComponent(name)}`} inherit underline="always">
          {pending.toLocaleString("en")}
        </Anchor>
      ) : (
        0
      ),
      "now",
    ],
    [
      messages.callsInDays(COUNTED_DAYS),
      `${calls.toLocaleString("en")}${complete ? "" : "+"}`,
      messages.withoutReads,
    ],
    [messages.askedAPerson, percentText(asked, calls), countText(asked, messages.call)],
    [messages.refused, (rejected + denied).toLocaleString("en"), messages.byPeopleByPolicy(rejected, denied)],
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
  const says = messages.callsAndAsked(
    countText(calls, messages.call),
    asked,
    busiest ? messages.mostOn(date(busiest.at), most) : "",
  );
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="days">
      <Stack gap="xs">
        <Title order={2} size="h4" id="days">
          {messages.callsPerDay}
        </Title>
        <Text size="sm">{says}</Text>
        <div className={css.days} role="img" aria-label={says}>
          {days.map((day) => (
            <span
              key={day.at}
              title={messages.dayCallsAndAsked(date(day.at), countText(day.calls, messages.call), day.asked)}
            >
              <i className={css.free} style={{ height: `${((day.calls - day.asked) / most) * 100}%` }} />
              <i className={css.asked} style={{ height: `${(day.asked / most) * 100}%` }} />
            </span>
          ))}
        </div>
        <div className={css.axis} aria-hidden="true">
          <span>{date(days[0]?.at ?? "")}</span>
          <span className={css.legend}>
            <i className={css.asked} /> {messages.askedAPersonInLegend} <i className={css.free} />{" "}
            {messages.ranWithoutAsking}
          </span>
          <span>{date(days.at(-1)?.at ?? "")}</span>
        </div>
        <details className={css.fold}>
          <summary>
            <Text component="span" size="sm">
              {messages.showAsTable}
            </Text>
          </summary>
          <table className={css.dayTable}>
            <thead>
              <tr>
                <th scope="col">{messages.dayUtc}</th>
                <th scope="col">{messages.calls}</th>
                <th scope="col">{messages.askedAPerson}</th>
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
        {messages.toolsItHasUsed}
      </Title>
      <Text size="sm" c="dimmed">
        {messages.toolsByFirstUseNewest(COUNTED_DAYS)}
      </Text>
      <ul className={css.plain} aria-label={messages.toolsItHasUsed}>
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
                  {messages.firstUsed} <TimeAgo at={tool.first_used_at} />
                </>
              ) : (
                messages.firstUseNotRecorded
              )}
            </Text>
          </li>
        ))}
      </ul>
      {tools.length > NEWEST && !showsAll && (
        <Button variant="default" mt="xs" onClick={() => setShowsAll(true)}>
          {messages.showAllTools(tools.length)}
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
