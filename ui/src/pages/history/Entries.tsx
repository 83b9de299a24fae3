import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import css from "./History.module.css";
import type { Entry } from "./sentences";
import { dot } from "./statuses";
import { Step } from "./Timeline";

/** Entries of the ledger; each leads to the call that it is about. */
export function Entries({ entries }: { entries: Entry[] }) {
  return (
    <ol className={css.timeline} aria-label="Entries">
      {entries.map((entry) => (
        <li
          key={entry.seq}
          className={css.step}
          data-kind={entry.kind}
          style={{ "--dot": dot(entry.kind) } as object}
        >
          <Step entry={entry} />
          {entry.approval_id && (
            <Anchor component={Link} href={`/history?id=${encodeURIComponent(entry.approval_id)}`} size="xs">
              Show the call of entry {entry.seq}
            </Anchor>
          )}
        </li>
      ))}
    </ol>
  );
}
