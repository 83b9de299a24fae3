import { Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Loading, Problem } from "../../components/States";
import { useTemplates } from "./data";
import type { Desk } from "./draft";
import css from "./Policy.module.css";

/** Whole policies to start from; taking one fills the draft, and can be undone in the text. */
export function Templates({ desk }: { desk: Desk }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.fold} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Start from a template</summary>
      {open && <Choices desk={desk} onTaken={() => setOpen(false)} />}
    </details>
  );
}

function Choices({ desk, onTaken }: { desk: Desk; onTaken: () => void }) {
  const templates = useTemplates();
  if (templates.isPending) return <Loading />;
  if (templates.error) return <Problem error={templates.error} again={() => void templates.refetch()} />;
  const take = (body: string) => {
    desk.change(body);
    onTaken();
  };
  return (
    <Stack gap="sm" py="xs">
      {templates.data.items.map(({ name, summary, body }) => (
        <Group key={name} gap="sm" wrap="nowrap" align="center">
          <Button
            variant="default"
            miw={110}
            onClick={() => take(body)}
            aria-label={`Use the template ${name}`}
          >
            {name}
          </Button>
          <Text size="sm">{summary}</Text>
        </Group>
      ))}
      <Text size="sm" c="dimmed">
        {desk.draft
          ? "It takes the place of your draft; Ctrl+Z in the text brings that back."
          : "It becomes a draft: nothing is in force before you say so."}
      </Text>
    </Stack>
  );
}
