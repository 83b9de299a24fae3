import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useState, type KeyboardEvent, type Ref } from "react";
import { Loading } from "../components/States";
import card from "./ApprovalCard.module.css";
import css from "./CardAside.module.css";
import type { CardLocation } from "./CardHead";
import * as messages from "./messages";
import type { ApprovalCardState } from "./useApprovalCard";

const MoreActions = lazy(() => import("./MoreActions"));

/** Whether there is room beside the card; else what stands there is folded below the arguments. */
export function useHasAside(location: CardLocation): boolean {
  const isWide = useMediaQuery("(min-width: 75em)", undefined, { getInitialValueInEffect: false });
  return isWide && (location === "inbox" || location === "page");
}

interface AsideProps {
  state: ApprovalCardState;
  isEditing: boolean;
  /** Where the editor shows its changes. */
  changesRef: Ref<HTMLDivElement>;
}

/** Beside the card: the agent to ask, what happened so far, other people. While one edits: the changes. */
export function CardAside({ state, isEditing, changesRef }: AsideProps) {
  return (
    <div
      className={css.aside}
      role="group"
      aria-label={messages.activityAndOtherActions}
      onKeyDown={leaveField}
    >
      <div className={css.sticky}>
        {isEditing ? (
          <div ref={changesRef} />
        ) : (
          <Suspense fallback={<Loading />}>
            <MoreActions state={state} hasTalk />
          </Suspense>
        )}
      </div>
    </div>
  );
}

/** Esc leads from a field back to the card; what was typed stays. */
function leaveField(event: KeyboardEvent<HTMLElement>): void {
  if (event.key !== "Escape" || event.nativeEvent.isComposing) return;
  if (!(event.target as Element).matches("input, select")) return;
  event.preventDefault();
  event.currentTarget.closest("article")?.focus({ preventScroll: true });
}

export function MoreSection({ state }: { state: ApprovalCardState }) {
  const [isOpened, setOpened] = useState(false);
  return (
    <details
      className={card.fold}
      data-more
      onToggle={(event) => event.currentTarget.open && setOpened(true)}
    >
      <summary>{messages.more}</summary>
      {isOpened && (
        <Suspense fallback={<Loading />}>
          <MoreActions state={state} hasTalk={false} />
        </Suspense>
      )}
    </details>
  );
}
