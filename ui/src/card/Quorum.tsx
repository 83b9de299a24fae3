import { Text } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import { TimeAgo } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";

type Stage = ApprovalSnapshot["stages"][number];

/** How many of how many said yes, who, and who is still needed; nothing where one person is enough. */
export function Quorum({ now }: { now: ApprovalSnapshot }) {
  const isPending = now.status === "pending";
  const onlyOne = now.quorum.need === 1 && !now.stages[0]?.approvers;
  if (onlyOne && !now.delegations.length) return null;
  return (
    <div
      role="group"
      className={css.block}
      aria-label="Who decides"
      data-quorum={`${now.quorum.have} of ${now.quorum.need}`}
    >
      <Text fw={700}>
        {now.quorum.have} of {now.quorum.need} {now.quorum.need === 1 ? "approval" : "approvals"}
      </Text>
      <ul className={css.plainList}>
        {now.votes.map((vote) => (
          <li key={`${vote.stage} ${vote.seat}`}>
            ✓ <strong>{vote.by}</strong>
            {vote.seat !== vote.by && ` for ${vote.seat}`}, <TimeAgo at={vote.at} />
          </li>
        ))}
        {now.stages.length > 1 &&
          now.stages.map((stage, place) => (
            <li key={place} data-stage={place} data-done={stage.done || undefined}>
              Stage {place + 1}: {stage.have} of {stage.need} from {peopleOf(stage)}
              {stage.done && ", done"}
            </li>
          ))}
        {now.delegations.map((each, place) => (
          <li key={place}>
            <strong>{each.by}</strong> delegated to{" "}
            {[...each.to.users, ...each.to.teams.map(teamOf)].join(", ")}
          </li>
        ))}
        {isPending && now.needed && <li data-needed>Still needed: {now.needed}</li>}
      </ul>
    </div>
  );
}

function peopleOf({ approvers }: Stage): string {
  if (!approvers) return "the requester, reviewers and admins";
  return [...approvers.users, ...approvers.teams.map(teamOf)].join(" or ");
}

function teamOf(name: string): string {
  return `team ${name}`;
}
