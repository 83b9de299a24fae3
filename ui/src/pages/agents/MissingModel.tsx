import { Alert, Text } from "@mantine/core";
import { mayDecide, useMe } from "../../api/currentUser";
import * as messages from "./messages";
import { useModels } from "./queries";

const MODEL_LINE = "export OPENAI_API_KEY=your-key";

/** Without a model no agent of the chat can answer: says so, with the one line that sets it. */
export function MissingModel() {
  return mayDecide(useMe().data) ? <Notice /> : null;
}

function Notice() {
  const models = useModels().data;
  if (!models || models.default) return null;
  return (
    <Alert variant="default" title={messages.noModelIsSet} role="note">
      <Text size="sm">
        {messages.agentsCannotAnswer} <code>{MODEL_LINE}</code> {messages.otherKeysWork}
      </Text>
    </Alert>
  );
}
