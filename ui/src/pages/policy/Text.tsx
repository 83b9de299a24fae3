import { Alert, List, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useRef } from "react";
import { Loading } from "../../components/States";
import { Complaints } from "./Complaints";
import { PAUSE, useChecked } from "./data";
import type { TabProps } from "./Policy";
import { Templates } from "./Templates";
import { complaintOf, complaintsOf } from "./words";
import type { EditorHandle } from "./YamlEditor";

const YamlEditor = lazy(() => import("./YamlEditor"));

/** The policy as YAML, looked at by the server whenever somebody stops typing. */
export default function PolicyText({ desk }: TabProps) {
  const [settled] = useDebouncedValue(desk.text, PAUSE);
  const checked = useChecked(settled);
  const editor = useRef<EditorHandle>(null);
  const complaints = complaintsOf(checked.data);
  const warnings = checked.data?.warnings.map(complaintOf) ?? [];
  return (
    <Stack gap="sm">
      <Templates desk={desk} />
      <Suspense fallback={<Loading what="Loading the editor" />}>
        <YamlEditor ref={editor} value={desk.text} complaints={complaints} onChange={desk.change} />
      </Suspense>
      {complaints.length > 0 && (
        <Complaints complaints={complaints} onGo={(line) => editor.current?.goTo(line)} />
      )}
      {warnings.length > 0 && (
        <Alert color="yellow" variant="outline" title="It loads, and this is odd" role="note">
          <List size="sm">
            {warnings.map(({ line, message }, at) => (
              <List.Item key={at}>
                {line > 0 && `Line ${line}: `}
                {message}
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Text size="sm" c="dimmed" role="status">
        {checked.isFetching || settled !== desk.text
          ? "Checking …"
          : checked.data?.valid
            ? `It loads, with ${checked.data.rules.length === 1 ? "1 rule" : `${checked.data.rules.length} rules`}.`
            : ""}
        {checked.error && `It cannot be checked now: ${checked.error.message}`}
      </Text>
    </Stack>
  );
}
