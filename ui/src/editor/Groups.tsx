import { Badge, Button, Group, UnstyledButton } from "@mantine/core";
import type {
  ArrayFieldItemTemplateProps,
  ArrayFieldTemplateProps,
  FieldTemplateProps,
  ObjectFieldTemplateProps,
} from "@rjsf/utils";
import css from "./Editor.module.css";
import { useEditing } from "./editing";
import { About, labelOf, pointerOf } from "./Field";
import { toForm } from "./formData";
import type { Plan } from "./plan";
import { same } from "./values";
import { visible } from "../components/visible";

/** Fields bring their own labels and problems. */
export function Bare({ children }: FieldTemplateProps) {
  return children;
}

export function Members({ fieldPathId, properties, schema }: ObjectFieldTemplateProps) {
  const fields = properties.map(({ name, content }) => <div key={name}>{content}</div>);
  if (fieldPathId.path.length === 0) return <div className={css.fields}>{fields}</div>;
  return (
    <fieldset className={css.group}>
      <legend className={css.name}>{labelOf(fieldPathId.path)}</legend>
      <About id={fieldPathId.$id} text={visible((schema as unknown as Plan).description)} />
      <Problems path={fieldPathId.path} />
      <div className={css.fields}>{fields}</div>
    </fieldset>
  );
}

export function Items({ fieldPathId, items, schema, formData, canAdd, onAddClick }: ArrayFieldTemplateProps) {
  const label = labelOf(fieldPathId.path);
  return (
    <fieldset className={css.group}>
      <legend className={css.name}>{label}</legend>
      <Changed path={fieldPathId.path} plan={schema as unknown as Plan} held={formData} />
      <About id={fieldPathId.$id} text={visible((schema as unknown as Plan).description)} />
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

export function Item({ children, buttonsProps }: ArrayFieldItemTemplateProps) {
  const { fieldPathId, hasRemove, hasMoveUp, onRemoveItem, onMoveUpItem } = buttonsProps;
  const label = labelOf(fieldPathId.path);
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

/** Of a list as a whole: which of its items are new cannot always be said. */
function Changed({ path, plan, held }: { path: (string | number)[]; plan: Plan; held: unknown }) {
  const { before, marked, put } = useEditing(pointerOf(path));
  if (!marked || same(toForm(plan, before) ?? [], held ?? [])) return null;
  return (
    <div className={css.head} data-changed>
      <Badge size="sm" variant="light" className={css.mark}>
        changed
      </Badge>
      <UnstyledButton className={css.link} aria-label={`Reset ${labelOf(path)}`} onClick={() => put(before)}>
        Reset
      </UnstyledButton>
    </div>
  );
}

/** Of a list or an object as a whole, such as too few items. */
function Problems({ path }: { path: (string | number)[] }) {
  const { problems } = useEditing(pointerOf(path));
  return problems.map((problem) => (
    <p key={problem} className={css.problem} tabIndex={-1} data-problem>
      {labelOf(path)} {problem}.
    </p>
  ));
}
