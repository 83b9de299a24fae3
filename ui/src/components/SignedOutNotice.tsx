import { Anchor, Text } from "@mantine/core";
import { useSearch } from "wouter";
import { useSignedOut } from "../live/session";
import * as messages from "./messages";
import css from "./SignedOutNotice.module.css";

/**
 * The session ended while the page was open. Input is kept: the user signs in in another tab, and this one recovers.
 */
export function SignedOutNotice({ path }: { path: string }) {
  const search = useSearch();
  if (!useSignedOut()) return null;
  const next = encodeURIComponent(search ? `${path}?${search}` : path);
  return (
    <div className={css.bar} role="alert">
      <Text inherit>{messages.youAreSignedOut}</Text>
      <Anchor href={`/signin?next=${next}`} target="_blank" className={css.link}>
        {messages.signInAgainInNewTab}
      </Anchor>
    </div>
  );
}
