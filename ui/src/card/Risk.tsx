import type { ApprovalSnapshot } from "../api/approvals";
import { RiskLabel, riskLevelOf, type RiskLevel } from "../components/RiskMark";
import css from "./ApprovalCard.module.css";
import { VisibleText } from "./VisibleText";

/** Whether the agent asks a question: there is nothing to run. */
export function isQuestion({ decisions }: Pick<ApprovalSnapshot, "decisions">): boolean {
  return decisions.length === 1 && decisions[0] === "respond";
}

const QUESTION_TOOL = "request_human_input"; // the server's tool for questions; nobody else can have its name

/** Whether there is no tool of somebody else behind it. */
export function isPlainQuestion(approval: Pick<ApprovalSnapshot, "decisions" | "tool">): boolean {
  return isQuestion(approval) && approval.tool === QUESTION_TOOL;
}

/** The mark of the card: a question has no risk. */
function riskOf(approval: Pick<ApprovalSnapshot, "card" | "effect" | "decisions">): RiskLevel {
  return isQuestion(approval) ? "question" : riskLevelOf(approval.card.risk, approval.effect);
}

/** Risk and tool, which stand wherever a call can be approved. */
export function RiskAndTool({ approval }: { approval: ApprovalSnapshot }) {
  return (
    <>
      <span data-risk={approval.card.risk}>
        <RiskLabel risk={riskOf(approval)} />
      </span>
      {!isPlainQuestion(approval) && (
        <span className={css.tool} data-tool>
          <VisibleText text={approval.card.tool} />
        </span>
      )}
    </>
  );
}
