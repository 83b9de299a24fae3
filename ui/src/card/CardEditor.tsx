import { Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Loading } from "../components/States";
import { visible } from "../components/visible";
import css from "./Arguments.module.css";
import { nameFindingKind, titleFindings, type Acknowledgements } from "./Findings";
import type { ApprovalCardState } from "./useApprovalCard";
import { VisibleText } from "./VisibleText";

const Editor = lazy(() => import("../editor/Editor"));

/** The editor over the arguments that one looked at; what happens to the call meanwhile costs nobody their text. */
export function CardEditor({ held }: { held: ApprovalCardState }) {
  const { now, seen, change, sending, refused, decide, open } = held;
  return (
    <>
      <Suspense fallback={<Loading what="Loading editor" />}>
        <Editor
          approval={{ ...seen, status: now.status, may_decide: now.may_decide, decision: now.decision }}
          blocked={change ? "Review the changes above before you send this." : ""}
          sending={sending === "edit"}
          refused={refused}
          onSend={(args) => decide("edit", { args })}
          onClose={() => open("")}
        />
      </Suspense>
      <EditFindings held={held} />
    </>
  );
}

/** The edited arguments may deceive too: the server names what has to be looked at. */
function EditFindings({ held: { editLooks, now } }: { held: ApprovalCardState }) {
  if (!editLooks.wanted.size) return null;
  const found = [...editLooks.wanted].map((id) => ({ id, ...partsOf(id) }));
  return (
    <div className={css.box} role="alert">
      <Text className={css.boxTitle}>In the edited arguments: {titleFindings(found)}</Text>
      <ul className={css.findings}>
        {found.map(({ id, pointer }) => (
          <EditFinding
            key={id}
            id={id}
            about={pointer || (now.findings.find((each) => each.id === id)?.message ?? "")}
            looks={editLooks}
          />
        ))}
      </ul>
      <Text size="sm">Then send the edit again.</Text>
    </div>
  );
}

/** An id is the kind and the place. */
function partsOf(id: string) {
  const at = id.indexOf(":");
  return { kind: id.slice(0, at), pointer: visible(id.slice(at + 2)) };
}

/** Names of arguments may deceive as well. */
function EditFinding({ id, about, looks }: { id: string; about: string; looks: Acknowledgements }) {
  return (
    <li className={css.finding} data-level="alarm">
      <span className={css.kind}>{nameFindingKind(partsOf(id).kind)}</span> <VisibleText text={about} />
      <div>
        <label className={css.look}>
          <input type="checkbox" checked={looks.looked.has(id)} onChange={() => looks.look(id)} />
          Checked
        </label>
      </div>
    </li>
  );
}
