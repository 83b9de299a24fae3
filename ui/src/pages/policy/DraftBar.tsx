import { Button, Group, Paper, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { PAUSE, useChecked } from "./data";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { summedUp } from "./words";

/** While there is a draft: what it changes, and the way to put it in force. */
export function DraftBar({ desk, go }: TabProps) {
  const [leaving, setLeaving] = useState(false);
  const [settled] = useDebouncedValue(desk.text, PAUSE);
  const checked = useChecked(settled).data;
  return (
    <Paper withBorder p="sm" className={css.bar} component="section" aria-label="Your draft">
      <Text size="sm">
        <b>Your draft is not in force.</b> {checked && words(checked)}
      </Text>
      <Group gap="xs">
        <Button onClick={() => go("review")} disabled={!checked?.valid}>
          Review and put in force
        </Button>
        {leaving ? (
          <Button color="red" variant="outline" onClick={desk.discard}>
            Really discard
          </Button>
        ) : (
          <Button variant="default" onClick={() => setLeaving(true)}>
            Discard
          </Button>
        )}
      </Group>
    </Paper>
  );
}

function words({ valid, problems, diff }: NonNullable<ReturnType<typeof useChecked>["data"]>): string {
  if (!valid) return problems.length === 1 ? "It has a mistake." : `It has ${problems.length} mistakes.`;
  const summed = summedUp(diff);
  return summed
    ? `${summed[0]?.toUpperCase()}${summed.slice(1)}.`
    : "Its rules say the same as those in force.";
}
