import { NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import * as messages from "./editorMessages";
import { useModels } from "./queries";

const OTHER = "other";

/** The default model, one that is in use, or another by name; and what is missing for it. */
export function ModelField({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (model: string) => void;
  error?: string;
}) {
  const models = useModels();
  const names = (models.data?.items ?? []).map((model) => model.name).filter(Boolean);
  const isListed = value === "" || names.includes(value);
  const [isOther, setOther] = useState(!isListed);
  const showsText = isOther || (models.data !== undefined && !isListed);
  const fallback = models.data?.default
    ? messages.defaultModelNamed(models.data.default)
    : messages.defaultModelNoneSet;
  return (
    <Stack gap="xs">
      <NativeSelect
        label={messages.model}
        value={showsText ? OTHER : value}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          setOther(chosen === OTHER);
          onChange(chosen === OTHER ? "" : chosen);
        }}
        data={[
          { value: "", label: fallback },
          ...names
            .filter((name) => name !== models.data?.default)
            .map((name) => ({ value: name, label: name })),
          { value: OTHER, label: messages.anotherModel },
        ]}
        error={showsText ? undefined : error}
      />
      {showsText && (
        <TextInput
          label={messages.modelName}
          description={messages.modelNameHint}
          maxLength={200}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
          error={error}
        />
      )}
      <ModelProblem model={value} />
    </Stack>
  );
}

/** Why the agent could not answer with this model: for instance, no key is set. */
export function ModelProblem({ model }: { model: string }) {
  const problem = useModelProblem(model);
  return (
    <Text size="sm" role="status">
      {problem && messages.thisModelCannotBeUsedYet(problem)}
    </Text>
  );
}

export function useModelProblem(model: string): string {
  const [name] = useDebouncedValue(model.trim(), 400);
  const checked = useModels(/^[a-z][a-z0-9_-]*:\S+$/.test(name) ? name : "");
  return checked.data?.items[0]?.problem ?? "";
}
