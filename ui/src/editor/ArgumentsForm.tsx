import { Badge, Button, Group, UnstyledButton } from "@mantine/core";
import Form from "@rjsf/core/lib/components/Form.js";
import type {
  ArrayFieldItemTemplateProps,
  ArrayFieldTemplateProps,
  FieldTemplateProps,
  ObjectFieldTemplateProps,
  RegistryFieldsType,
  RJSFSchema,
  TemplatesType,
  ValidatorType,
} from "@rjsf/utils";
import { useMemo } from "react";
import { escapeInvisible } from "../components/escapeInvisible";
import css from "./Editor.module.css";
import { FieldDescription, toLabel, toPointer } from "./FieldFrame";
import { AsJsonField, ChoiceField, FlagField, LockedField, NumberField, TextField } from "./Fields";
import { fromFormData, toFormData } from "./formData";
import type { FormPlan } from "./formPlan";
import { useFieldState } from "./formState";
import { useStableValue } from "./hooks";
import { sameValue } from "./values";

/** The field components, by the `$id` of a plan. */
const FIELDS: RegistryFieldsType = {
  Text: TextField,
  Number: NumberField,
  Flag: FlagField,
  Choice: ChoiceField,
  Locked: LockedField,
  AsJson: AsJsonField,
};
const TEMPLATES: Partial<TemplatesType> = {
  FieldTemplate: BareTemplate,
  ObjectFieldTemplate: ObjectTemplate,
  ArrayFieldTemplate: ArrayTemplate,
  ArrayFieldItemTemplate: ArrayItemTemplate,
};
/** The form plan is not a validation schema: `checkSchema` and the server validate the arguments. */
const NO_VALIDATOR: ValidatorType = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  isValid: () => true,
  rawValidation: () => ({}),
};
const DEFAULTS_BEHAVIOR = {
  emptyObjectFields: "skipDefaults",
  constAsDefaults: "never",
  arrayMinItems: { populate: "never" },
} as const;

interface FormProps {
  plan: FormPlan;
  value: unknown;
  id: string;
  onValue: (value: unknown) => void;
}

export default function ArgumentsForm({ plan, value, id, onValue }: FormProps) {
  const stablePlan = useStableValue(plan, planKey);
  const formValue = useMemo(() => toFormData(stablePlan, value), [stablePlan, value]);
  return (
    <Form
      schema={stablePlan as unknown as RJSFSchema}
      formData={formValue}
      validator={NO_VALIDATOR}
      fields={FIELDS}
      templates={TEMPLATES}
      tagName="div"
      idPrefix={id}
      noValidate
      experimental_componentUpdateStrategy="shallow"
      showErrorList={false}
      experimental_defaultFormStateBehavior={DEFAULTS_BEHAVIOR}
      onChange={({ formData }) => onValue(fromFormData(stablePlan, formData))}
    >
      <></>
    </Form>
  );
}

function planKey(plan: FormPlan): string {
  return JSON.stringify(plan, (_, part: unknown) => (typeof part === "bigint" ? `${part}n` : part));
}

/** Fields render their own labels and problems. */
function BareTemplate({ children }: FieldTemplateProps) {
  return children;
}

function ObjectTemplate({ fieldPathId, properties, schema }: ObjectFieldTemplateProps) {
  const fields = properties.map(({ name, content }) => <div key={name}>{content}</div>);
  if (fieldPathId.path.length === 0) return <div className={css.fields}>{fields}</div>;
  return (
    <fieldset className={css.group}>
      <legend className={css.name}>{toLabel(fieldPathId.path)}</legend>
      <FieldDescription
        id={fieldPathId.$id}
        text={escapeInvisible((schema as unknown as FormPlan).description)}
      />
      <Problems path={fieldPathId.path} />
      <div className={css.fields}>{fields}</div>
    </fieldset>
  );
}

function ArrayTemplate({
  fieldPathId,
  items,
  schema,
  formData,
  canAdd,
  onAddClick,
}: ArrayFieldTemplateProps) {
  const label = toLabel(fieldPathId.path);
  return (
    <fieldset className={css.group}>
      <legend className={css.name}>{label}</legend>
      <ChangedMark path={fieldPathId.path} plan={schema as unknown as FormPlan} formValue={formData} />
      <FieldDescription
        id={fieldPathId.$id}
        text={escapeInvisible((schema as unknown as FormPlan).description)}
      />
      <Problems path={fieldPathId.path} />
      <div className={css.fields}>
        {items}
        {canAdd && (
          <Button size="compact-sm" variant="default" className={css.add} onClick={() => onAddClick()}>
            Add to {label}
          </Button>
        )}
      </div>
    </fieldset>
  );
}

function ArrayItemTemplate({ children, buttonsProps }: ArrayFieldItemTemplateProps) {
  const { fieldPathId, hasRemove, hasMoveUp, onRemoveItem, onMoveUpItem } = buttonsProps;
  const label = toLabel(fieldPathId.path);
  return (
    <div className={css.item}>
      <div className={css.grow}>{children}</div>
      <Group gap={4} wrap="nowrap">
        {hasMoveUp && (
          <UnstyledButton className={css.link} aria-label={`Move ${label} up`} onClick={onMoveUpItem}>
            Up
          </UnstyledButton>
        )}
        {hasRemove && (
          <UnstyledButton className={css.link} aria-label={`Remove ${label}`} onClick={onRemoveItem}>
            Remove
          </UnstyledButton>
        )}
      </Group>
    </div>
  );
}

/** Marks a list as a whole: which of its items are new is not always known. */
function ChangedMark({
  path,
  plan,
  formValue,
}: {
  path: (string | number)[];
  plan: FormPlan;
  formValue: unknown;
}) {
  const { before, marked, put } = useFieldState(toPointer(path));
  if (!marked || sameValue(toFormData(plan, before) ?? [], formValue ?? [])) return null;
  return (
    <div className={css.head} data-changed>
      <Badge size="sm" variant="light" className={css.mark}>
        changed
      </Badge>
      <UnstyledButton className={css.link} aria-label={`Reset ${toLabel(path)}`} onClick={() => put(before)}>
        Reset
      </UnstyledButton>
    </div>
  );
}

/** Problems of a whole list or object, such as too few items. */
function Problems({ path }: { path: (string | number)[] }) {
  const { problems } = useFieldState(toPointer(path));
  return problems.map((problem) => (
    <p key={problem} className={css.problem} tabIndex={-1} data-problem>
      {toLabel(path)} {problem}.
    </p>
  ));
}
