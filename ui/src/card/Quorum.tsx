import { Text } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import { TimeAgo } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import * as messages from "./messages";
import { usePersonName } from "./usePersonName";

type Stage = ApprovalSnapshot["stages"][number];

const MAX_PIPS = 10;

/** The votes so far and the approvers still needed; nothing if one approval is enough. */
export function Quorum({ approval }: { approval: ApprovalSnapshot }) {
  const nameOf = usePersonName();
  const isPending = approval.status === "pending";
  const onlyOne = approval.quorum.need === 1 && !approval.stages[0]?.approvers;
  if (onlyOne && !approval.delegations.length) return null;
  return (
    <div
      role="group"
      className={`${css.block} ${css.quorum}`}
      aria-label={messages.whoDecides}
      data-quorum={`${approval.quorum.have} of ${approval.quorum.need}`}
    >
      <Text size="sm" fw={650}>
        <span className={css.pips} aria-hidden>
          {Array.from({ length: Math.min(approval.quorum.need, MAX_PIPS) }, (_, at) => (
            <i key={at} data-done={at < approval.quorum.have || undefined} />
          ))}
        </span>
        {messages.approvalsOf(approval.quorum.have, approval.quorum.need)}
      </Text>
      <ul className={css.plainList}>
        {approval.votes.map((vote) => (
          <li key={`${vote.stage} ${vote.seat}`}>
            ✓ <strong>{nameOf(vote.by)}</strong>
            {vote.seat !== vote.by && messages.forPerson(nameOf(vote.seat))}, <TimeAgo at={vote.at} />
          </li>
        ))}
        {approval.stages.length > 1 &&
          approval.stages.map((stage, index) => (
            <li key={index} data-stage={index} data-done={stage.done || undefined}>
              {messages.stageState(index + 1, stage.have, stage.need, approverNames(stage))}
              {stage.done && messages.doneSuffix}
            </li>
          ))}
        {approval.delegations.map((delegation, index) => (
          <li key={index}>
            <strong>{nameOf(delegation.by, true)}</strong>{" "}
            {messages.delegatedTo(
              [
                ...delegation.to.users.map((name) => nameOf(name)),
                ...delegation.to.teams.map(teamLabel),
              ].join(", "),
            )}
          </li>
        ))}
        {isPending && approval.needed && <li data-needed>{messages.stillNeeded(approval.needed)}</li>}
      </ul>
    </div>
  );
}

function approverNames({ approvers }: Stage): string {
  if (!approvers) return messages.requesterReviewersAndAdmins;
  return [...approvers.users, ...approvers.teams.map(teamLabel)].join(messages.orSeparator);
}

function teamLabel(name: string): string {
  return messages.teamName(name);
}
