import { Button, Group, Paper, Stack, Text, Textarea, Title } from "@mantine/core";
import { useEffect, useState } from "react";
import { Refused } from "../../api/client";
import { Empty, Problem } from "../../components/States";
import { Complaints } from "./Complaints";
import { Conflict } from "./Conflict";
import { useChecked, usePut } from "./data";
import type { Draft } from "./draft";
import { LineDiff } from "./LineDiff";
import type { TabProps } from "./Policy";
import { RuleDiff } from "./RuleDiff";
import { complaintsOf } from "./words";

/** The last look before a draft is put in force: what it changes, and why. */
export default function Review({ desk, go }: TabProps) {
  const [reason, setReason] = useState("");
  const put = usePut(({ version, new: fresh }) => {
    desk.discard();
    go("rules", fresh ? `Version ${version} is in force.` : "This very policy was in force already.");
  });
  const { draft, inForce } = desk;
  const stale = isStale(put.error);
  useEffect(() => {
    if (stale) put.reset(); // what is in force now is read by then, and the conflict shows by itself
  }, [stale, put]);
  if (!draft)
    return <Empty title="There is no draft">Change a rule or the text, and it can be reviewed here.</Empty>;
  if (draft.base.version !== inForce.version && !put.isPending) return <Conflict desk={desk} draft={draft} />;
  return (
    <Stack gap="md">
      <Changes desk={desk} draft={draft} go={go} />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          put.mutate({ text: draft.text, seen: draft.base.version, reason: reason.trim() });
        }}
      >
        <Stack gap="sm">
          <Textarea
            label="Why?"
            description="Kept with the version, with your name and the time."
            required
            maxLength={1000}
            rows={2}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {put.error && !stale && <Problem error={put.error} />}
          <Group>
            <Button type="submit" loading={put.isPending} disabled={!reason.trim()}>
              Put in force
            </Button>
            <Button variant="default" onClick={() => go("rehearse")}>
              Rehearse it first
            </Button>
            <Button variant="default" onClick={() => go("text")}>
              Back to the text
            </Button>
          </Group>
        </Stack>
      </form>
    </Stack>
  );
}

function Changes({ desk, draft, go }: TabProps & { draft: Draft }) {
  const checked = useChecked(draft.text).data;
  if (checked && !checked.valid)
    return (
      <Complaints complaints={complaintsOf(checked)} onGo={() => go("text")} words="Mend it in the text." />
    );
  return (
    <>
      <Paper withBorder p="md" component="section" aria-labelledby="changes">
        <Title order={2} size="h4" id="changes">
          What changes
        </Title>
        {checked?.diff && <RuleDiff diff={checked.diff} />}
        {checked?.warnings.map((warning) => (
          <Text size="sm" key={warning}>
            Odd, and allowed: {warning}
          </Text>
        ))}
      </Paper>
      <LineDiff before={desk.inForce.text} after={draft.text} label="The difference, line by line" />
    </>
  );
}

function isStale(error: Error | null): boolean {
  return error instanceof Refused && error.code === "stale";
}
