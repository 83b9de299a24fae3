import { Alert, Button, Stack, Text } from "@mantine/core";
import type { PolicyProblem } from "./describePolicy";
import css from "./Policy.module.css";

interface ComplaintsProps {
  complaints: PolicyProblem[];
  words?: string;
  onGo: (line: number) => void;
}

/** Everything that is wrong, with a way to its line. */
export function ProblemList({ complaints, words, onGo }: ComplaintsProps) {
  return (
    <Alert color="red" title="The policy is invalid" role="alert" classNames={{ title: css.wrong }}>
      <Stack gap={4} align="start">
        {complaints.map(({ line, message }, at) => (
          <Text size="sm" key={at}>
            {line > 0 && (
              <Button variant="default" size="compact-sm" mr="xs" onClick={() => onGo(line)}>
                Line {line}
              </Button>
            )}
            {message}
          </Text>
        ))}
        <Text size="sm">The policy in force stays in force. {words}</Text>
      </Stack>
    </Alert>
  );
}
