import { Alert, Text } from "@mantine/core";
import { mayDecide, useMe } from "../../api/currentUser";
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
    <Alert variant="default" title="No model is set" role="note">
      <Text size="sm">
        Agents of the chat cannot answer. Run this where the server starts, then restart it:{" "}
        <code>{MODEL_LINE}</code> (ANTHROPIC_API_KEY and GOOGLE_API_KEY work too). Agents that you connect
        bring their own model.
      </Text>
    </Alert>
  );
}
