import { Button, Group, NativeSelect, Paper, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { Problem } from "../../components/States";
import { useRehearse } from "./data";
import type { TabProps } from "./Policy";
import { RehearsalResult } from "./Rehearsal";

const LISTED = 50;
const TIMES = [
  { value: "1d", label: "the last day" },
  { value: "7d", label: "the last 7 days" },
  { value: "30d", label: "the last 30 days" },
  { value: "90d", label: "the last 90 days" },
];

/** The draft over the calls that were made, beside what is in force. */
export default function Rehearse({ desk, go }: TabProps) {
  const [since, setSince] = useState("30d");
  const rehearse = useRehearse();
  const seconds = useSeconds(rehearse.isPending);
  const stale = rehearse.variables && rehearse.variables.text !== desk.text;
  return (
    <Stack gap="md">
      <Paper withBorder p="md">
        <Stack gap="sm">
          <Text size="sm">
            Every recorded call is judged twice, by what is in force and by your draft. Nothing is put in
            force, recorded or run.
          </Text>
          {!desk.draft && (
            <Text size="sm">
              There is no draft yet, so nothing would change.{" "}
              <Button variant="default" size="compact-sm" onClick={() => go("text")}>
                Write one
              </Button>
            </Text>
          )}
          <Group align="end" gap="sm">
            <NativeSelect
              label="Calls of"
              data={TIMES}
              value={since}
              onChange={(event) => setSince(event.currentTarget.value)}
            />
            <Button
              loading={rehearse.isPending}
              disabled={!desk.draft}
              onClick={() => rehearse.mutate({ text: desk.text, since, limit: LISTED })}
            >
              Rehearse
            </Button>
          </Group>
          <Text size="sm" c="dimmed" role="status">
            {rehearse.isPending && `Rehearsing for ${seconds} s; it takes 20 s at most, and 100,000 calls.`}
            {rehearse.data && stale && "The draft has changed since: this is about the one before."}
          </Text>
          {rehearse.error && <Problem error={rehearse.error} />}
        </Stack>
      </Paper>
      {rehearse.data && <RehearsalResult found={rehearse.data} />}
    </Stack>
  );
}

function useSeconds(on: boolean): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => setSeconds((before) => before + 1), 1_000);
    return () => {
      clearInterval(timer);
      setSeconds(0);
    };
  }, [on]);
  return seconds;
}
