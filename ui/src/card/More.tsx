import { Anchor, Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import type { Read } from "../api/approvals";
import { mayDecide, useMe } from "../api/me";
import css from "./Card.module.css";
import { Delegate } from "./Delegate";
import type { Held } from "./held";
import { Line } from "./Line";

/** What one can do besides answering. */
export default function More({ held }: { held: Held }) {
  const me = useMe().data;
  const { now } = held;
  const isPending = now.status === "pending";
  return (
    <div className={css.answers}>
      {mayDecide(me) && isPending && (
        <Line held={held} verb="ask" field="question" label="Ask the agent" button="Ask" />
      )}
      {mayDecide(me) && (
        <Line held={held} verb="comment" field="text" label="Remark for other people" button="Add" />
      )}
      {isPending && now.may_decide.length > 0 && <Delegate held={held} />}
      <Group gap="xs">
        {isPending && mayDecide(me) && <Claim held={held} me={me?.name ?? ""} />}
        <CopyLink id={now.id} />
      </Group>
      <Group gap="md">
        <Anchor size="sm" component={Link} href={`/history?id=${now.id}`}>
          Timeline
        </Anchor>
        {mayDecide(me) && (
          <Anchor size="sm" component={Link} href={grantFor(now)}>
            Allow such calls for a while
          </Anchor>
        )}
      </Group>
    </div>
  );
}

function grantFor({ tool, agent }: Read): string {
  return `/settings/grants?new&${new URLSearchParams({ tool, agent })}`;
}

function Claim({ held, me }: { held: Held; me: string }) {
  const verb = held.now.claimed_by === me ? "release" : "claim";
  return (
    <Button
      variant="default"
      className={css.wide}
      loading={held.sending === verb}
      title="Others see that you are on it. They may still decide."
      onClick={() => held.move(verb)}
    >
      {verb === "claim" ? "I am on it" : "I am not on it any more"}
    </Button>
  );
}

/** Without HTTPS a page may not write to the clipboard: then the link is shown. */
function CopyLink({ id }: { id: string }) {
  const [told, setTold] = useState("");
  const link = `${location.origin}/a/${id}`;
  const copy = () =>
    navigator.clipboard
      ? navigator.clipboard.writeText(link).then(
          () => setTold("Copied."),
          () => setTold(link),
        )
      : setTold(link);
  return (
    <>
      <Button variant="default" className={css.wide} onClick={() => void copy()}>
        Copy the link
      </Button>
      {told && (
        <Text size="sm" role="status">
          {told}
        </Text>
      )}
    </>
  );
}
