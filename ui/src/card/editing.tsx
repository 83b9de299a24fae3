import { Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Loading } from "../parts/states";
import css from "./arguments.module.css";
import { kindName, type Looks } from "./findings";
import type { Held } from "./held";
import { visible } from "../parts/visible";
import { Visible } from "./text";

const Editor = lazy(() => import("../editor/editor"));

/** The editor over the arguments that one looked at; what happens to the call meanwhile costs nobody their text. */
export function Editing({ held }: { held: Held }) {
  const { now, seen, change, sending, refused, decide, open } = held;
  return (
    <>
      <Suspense fallback={<Loading what="Loading the editor" />}>
        <Editor
          approval={{ ...seen, status: now.status, may_decide: now.may_decide, decision: now.decision }}
          blocked={change ? "Look at what changed, above, before you send this." : ""}
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
function EditFindings({ held: { editLooks } }: { held: Held }) {
  if (!editLooks.wanted.size) return null;
  return (
    <div className={css.box} role="alert">
      <Text className={css.boxTitle}>The edited arguments contain text that may deceive</Text>
      <ul className={css.findings}>
        {[...editLooks.wanted].map((id) => (
          <EditFinding key={id} id={id} looks={editLooks} />
        ))}
      </ul>
      <Text size="sm">Then send the edit again.</Text>
    </div>
  );
}

/** An id is the kind and the place; names of arguments may deceive as well. */
function EditFinding({ id, looks }: { id: string; looks: Looks }) {
  const at = id.indexOf(":");
  return (
    <li className={css.finding} data-level="alarm">
      <span className={css.kind}>{kindName(id.slice(0, at))}</span>{" "}
      <Visible text={visible(id.slice(at + 2))} />
      <div>
        <label className={css.look}>
          <input type="checkbox" checked={looks.looked.has(id)} onChange={() => looks.look(id)} />I have
          looked at it
        </label>
      </div>
    </li>
  );
}
