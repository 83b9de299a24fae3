import Form from "@rjsf/core/lib/components/Form.js"; // the package itself also loads its tests, and they another validator
import type { RegistryFieldsType, RJSFSchema, TemplatesType, ValidatorType } from "@rjsf/utils";
import { useMemo } from "react";
import { AsJsonField, ChoiceField, FlagField, LockedField, NumberField, TextField } from "./Fields";
import { fromForm, toForm } from "./formData";
import { Bare, Item, Items, Members } from "./Groups";
import type { Plan } from "./plan";
import { useSteady } from "./steady";

/** `$id` of a plan names one of these. */
const FIELDS: RegistryFieldsType = {
  Text: TextField,
  Number: NumberField,
  Flag: FlagField,
  Choice: ChoiceField,
  Locked: LockedField,
  AsJson: AsJsonField,
};
const TEMPLATES: Partial<TemplatesType> = {
  FieldTemplate: Bare,
  ObjectFieldTemplate: Members,
  ArrayFieldTemplate: Items,
  ArrayFieldItemTemplate: Item,
};
/** The form's own plan is no schema to validate by: `check` looks at the arguments, then the server does. */
const UNASKED: ValidatorType = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  isValid: () => true,
  rawValidation: () => ({}),
};
const AS_GIVEN = {
  emptyObjectFields: "skipDefaults",
  constAsDefaults: "never",
  arrayMinItems: { populate: "never" },
} as const;

interface FormProps {
  plan: Plan;
  value: unknown;
  id: string;
  onValue: (value: unknown) => void;
}

export default function ArgumentsForm({ plan, value, id, onValue }: FormProps) {
  const steady = useSteady(plan, said);
  const held = useMemo(() => toForm(steady, value), [steady, value]);
  return (
    <Form
      schema={steady as unknown as RJSFSchema}
      formData={held}
      validator={UNASKED}
      fields={FIELDS}
      templates={TEMPLATES}
      tagName="div"
      idPrefix={id}
      noValidate
      experimental_componentUpdateStrategy="shallow"
      showErrorList={false}
      experimental_defaultFormStateBehavior={AS_GIVEN}
      onChange={({ formData }) => onValue(fromForm(steady, formData))}
    >
      <></>
    </Form>
  );
}

function said(plan: Plan): string {
  return JSON.stringify(plan, (_, part: unknown) => (typeof part === "bigint" ? `${part}n` : part));
}
