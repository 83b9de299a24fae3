import { Text } from "@mantine/core";
import { escapeInvisible } from "../components/escapeInvisible";
import Editor from "../editor/Editor";
import card from "./ApprovalCard.module.css";
import css from "./Arguments.module.css";
import { EarlySign } from "./EarlySign";
import { nameFindingKind, titleFindings, type Acknowledgements } from "./Findings";
import * as messages from "./messages";
import { RiskAndTool } from "./Risk";
import type { ApprovalCardState } from "./useApprovalCard";
import { VisibleText } from "./VisibleText";

interface CardEditorProps {
  state: ApprovalCardState;
  /** The head of the card is out of sight: risk and tool stand at the buttons too. */
  showsTool: boolean;
  /** Where the changes are shown while they are made, if there is room beside the card. */
  changesPlace: HTMLElement | null;
}

/** The editor for the reviewed arguments; the user's draft survives changes to the call. */
export function CardEditor({ state, showsTool, changesPlace }: CardEditorProps) {
  const { approval, seen, newEdits, settled, sending, refusal, decide, open, tooEarly } = state;
  return (
    <>
      <Editor
        approval={{
          ...seen,
          card: approval.card,
          status: approval.status,
          may_decide: approval.may_decide,
          decision: approval.decision,
        }}
        blocked={newEdits ? messages.reviewChangesAbove : ""}
        about={
          <>
            <EarlySign isShown={state.isEarly} />
            {showsTool && (
              <div className={card.top} data-repeated>
                <RiskAndTool approval={approval} />
              </div>
            )}
          </>
        }
        changesPlace={changesPlace}
        settled={settled}
        onTooEarly={tooEarly}
        sending={sending === "edit"}
        refused={refusal}
        onSend={(args) => decide("edit", { args })}
        onClose={() => open("")}
      />
      <EditFindings state={state} />
    </>
  );
}

/** Findings in the edited arguments, as listed by the server. */
function EditFindings({ state: { editAcknowledgements, approval } }: { state: ApprovalCardState }) {
  if (!editAcknowledgements.required.size) return null;
  const found = [...editAcknowledgements.required].map((id) => ({ id, ...parseFindingId(id) }));
  return (
    <div className={css.box} role="alert">
      <Text className={css.boxTitle}>{messages.inEditedArguments(titleFindings(found))}</Text>
      <ul className={css.findings}>
        {found.map(({ id, pointer }) => (
          <EditFinding
            key={id}
            id={id}
            description={pointer || (approval.findings.find((each) => each.id === id)?.message ?? "")}
            acknowledgements={editAcknowledgements}
          />
        ))}
      </ul>
      <Text size="sm">{messages.thenSendEditAgain}</Text>
    </div>
  );
}

/** A finding id is its kind and its pointer. */
function parseFindingId(id: string) {
  const at = id.indexOf(":");
  return { kind: id.slice(0, at), pointer: escapeInvisible(id.slice(at + 2)) };
}

/** Argument names can be misleading as well. */
function EditFinding({
  id,
  description,
  acknowledgements,
}: {
  id: string;
  description: string;
  acknowledgements: Acknowledgements;
}) {
  return (
    <li className={css.finding} data-level="alarm">
      <span className={css.kind}>{nameFindingKind(parseFindingId(id).kind)}</span>{" "}
      <VisibleText text={description} />
      <div>
        <label className={css.look}>
          <input
            type="checkbox"
            checked={acknowledgements.acknowledged.has(id)}
            onChange={() => acknowledgements.toggle(id)}
          />
          {messages.checked}
        </label>
      </div>
    </li>
  );
}
