import { Button, UnstyledButton } from "@mantine/core";
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
import { Fragment, useMemo, type CSSProperties, type MouseEventHandler, type ReactNode } from "react";
import { escapeInvisible } from "../components/escapeInvisible";
import { IconClose, IconDown, IconPlus, IconUp } from "../components/icons";
import css from "./Editor.module.css";
import { FieldDescription, FormSwitch, toLabels, toPointer } from "./FieldFrame";
import { AsJsonField, ChoiceField, FlagField, LockedField, NumberField, TextField } from "./Fields";
import { fromFormData, toFormData } from "./formData";
import type { FormPlan } from "./formPlan";
import { useFieldState } from "./formState";
import { useStableValue } from "./hooks";
import * as messages from "./messages";
import { TimeField } from "./TimeField";
import { sameValue } from "./values";

/** The field components, by the `$id` of a plan. */
const FIELDS: RegistryFieldsType = {
  Text: TextField,
  Time: TimeField,
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

function ObjectTemplate({ fieldPathId: { $id, path }, properties, schema }: ObjectFieldTemplateProps) {
  const plan = schema as unknown as FormPlan;
  const { before, put } = useFieldState(toPointer(path));
  const fields = properties.map(({ name, content }) => <Fragment key={name}>{content}</Fragment>);
  if (plan.isCell) return <div className={css.cells}>{fields}</div>;
  if (path.length === 0) return <div className={css.fields}>{fields}</div>;
  const { label } = toLabels(path, plan);
  return (
    <fieldset className={css.group} data-width="full">
      <GroupName path={path} plan={plan} />
      <FormSwitch plan={plan} label={label} before={before} put={put} />
      <FieldDescription id={$id} text={escapeInvisible(plan.description)} />
      <Problems path={path} label={label} />
      <div className={css.fields}>{fields}</div>
    </fieldset>
  );
}

function GroupName({ path, plan }: { path: (string | number)[]; plan: FormPlan }) {
  const { label, name } = toLabels(path, plan);
  return (
    <legend className={css.label}>
      {label}
      {name && <span className={css.raw}>{name}</span>}
    </legend>
  );
}

function ArrayTemplate({
  fieldPathId: { $id, path },
  items,
  schema,
  formData,
  canAdd,
  onAddClick,
}: ArrayFieldTemplateProps) {
  const plan = schema as unknown as FormPlan;
  const { label } = toLabels(path, plan);
  const { before, put } = useFieldState(toPointer(path));
  const columns = Object.entries(plan.items?.properties ?? {});
  return (
    <fieldset className={css.group} data-width="full" data-list>
      <GroupName path={path} plan={plan} />
      <FormSwitch plan={plan} label={label} before={before} put={put} />
      <FieldDescription id={$id} text={escapeInvisible(plan.description)} />
      <Problems path={path} label={label} />
      {plan.isTable ? (
        <div className={css.rows} style={{ "--template": templateOf(plan) } as CSSProperties}>
          {items.length > 0 && (
            <div className={css.rowHead} aria-hidden>
              {columns.map(([name, column]) => (
                <span key={name}>{escapeInvisible(column.title || name)}</span>
              ))}
            </div>
          )}
          {items}
        </div>
      ) : (
        <div className={css.items}>{items}</div>
      )}
      <ChangedMark path={path} plan={plan} label={label} formValue={formData} />
      {canAdd && (
        <Button
          size="compact-sm"
          variant="subtle"
          className={css.add}
          leftSection={<IconPlus size={14} stroke={1.75} aria-hidden />}
          onClick={() => onAddClick()}
        >
          {messages.addTo(label)}
        </Button>
      )}
    </fieldset>
  );
}

/** The widths of a table's columns, by what they hold. */
function templateOf({ items }: FormPlan): string {
  return Object.values(items?.properties ?? {})
    .map(({ $id, format }) => TIME_COLUMNS[format ?? ""] ?? `minmax(0, ${WEIGHTS[$id ?? ""] ?? 1}fr)`)
    .join(" ");
}

/** The browser's own fields do not shrink: narrower ones would lie over the next column. */
const TIME_COLUMNS: Record<string, string> = {
  "date-time": "minmax(264px, 2fr)",
  date: "minmax(136px, 1fr)",
};
const WEIGHTS: Record<string, number> = { Flag: 0.8, Number: 1, Text: 1.4 };

function ArrayItemTemplate({ children, buttonsProps, schema }: ArrayFieldItemTemplateProps) {
  const { fieldPathId, hasRemove, hasMoveUp, hasMoveDown, onRemoveItem, onMoveUpItem, onMoveDownItem } =
    buttonsProps;
  const plan = schema as unknown as FormPlan;
  const { label } = toLabels(fieldPathId.path, plan);
  return (
    <div className={css.item} data-row={plan.isCell || undefined}>
      {plan.isCell && <span className={css.rowNumber}>{Number(fieldPathId.path.at(-1)) + 1}</span>}
      <div className={css.grow}>{children}</div>
      <div className={css.itemButtons}>
        <ItemButton label={messages.moveUp(label)} isEnabled={hasMoveUp} onClick={onMoveUpItem}>
          <IconUp {...ICON} />
        </ItemButton>
        <ItemButton label={messages.moveDown(label)} isEnabled={hasMoveDown} onClick={onMoveDownItem}>
          <IconDown {...ICON} />
        </ItemButton>
        {hasRemove && (
          <ItemButton label={messages.removeItem(label)} isEnabled onClick={onRemoveItem}>
            <IconClose {...ICON} />
          </ItemButton>
        )}
      </div>
    </div>
  );
}

const ICON = { size: 15, stroke: 1.75, "aria-hidden": true } as const;

interface ItemButtonProps {
  label: string;
  isEnabled: boolean;
  onClick: MouseEventHandler<HTMLButtonElement>;
  children: ReactNode;
}

/** The first row cannot go up: its button keeps its place, so that the others do. */
function ItemButton({ label, isEnabled, onClick, children }: ItemButtonProps) {
  return (
    <UnstyledButton
      className={css.icon}
      aria-label={label}
      title={label}
      disabled={!isEnabled}
      onClick={onClick}
    >
      {children}
    </UnstyledButton>
  );
}

/** Marks a list as a whole: which of its items are new is not always known. */
function ChangedMark({
  path,
  plan,
  label,
  formValue,
}: {
  path: (string | number)[];
  plan: FormPlan;
  label: string;
  formValue: unknown;
}) {
  const { before, marked, put } = useFieldState(toPointer(path));
  if (!marked || sameValue(toFormData(plan, before) ?? [], formValue ?? [])) return null;
  const count = Array.isArray(before) ? before.length : 0;
  return (
    <p className={css.was} data-changed>
      {before === undefined ? messages.wasNotSet : messages.wasItemCount(count)}
      {" · "}
      <UnstyledButton
        className={css.link}
        aria-label={messages.resetField(label)}
        onClick={() => put(before)}
      >
        {messages.reset}
      </UnstyledButton>
    </p>
  );
}

/** Problems of a whole list or object, such as too few items. */
function Problems({ path, label }: { path: (string | number)[]; label: string }) {
  const { problems } = useFieldState(toPointer(path));
  return problems.map((problem) => (
    <p key={problem} className={css.problem} tabIndex={-1} data-problem>
      {label} {problem}.
    </p>
  ));
}
