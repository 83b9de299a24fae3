import { Alert, Button, Stack, Text } from "@mantine/core";
import type { PolicyProblem } from "./describePolicy";
import * as messages from "./messages";
import css from "./Policy.module.css";

interface ProblemListProps {
  problems: PolicyProblem[];
  advice?: string;
  onGo: (line: number) => void;
}

/** All problems, with links to their lines. */
export function ProblemList({ problems, advice, onGo }: ProblemListProps) {
  return (
    <Alert color="red" title={messages.policyIsInvalid} role="alert" classNames={{ title: css.wrong }}>
      <Stack gap={4} align="start">
        {problems.map(({ line, message }, at) => (
          <Text size="sm" key={at}>
            {line > 0 && (
              <Button variant="default" size="compact-sm" mr="xs" onClick={() => onGo(line)}>
                {messages.lineNumber(line)}
              </Button>
            )}
            {message}
          </Text>
        ))}
        <Text size="sm">
          {messages.policyStaysInForce} {advice}
        </Text>
      </Stack>
    </Alert>
  );
}
