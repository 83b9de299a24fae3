import { NativeSelect, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useLocation } from "wouter";
import { callApi, fieldProblem, type Schemas } from "../../api/client";
import { mayDecide, useMe } from "../../api/currentUser";
import { Confirm } from "../../components/Confirm";
import { EditForm } from "../../components/EditForm";
import { ItemHistory } from "../../components/ItemHistory";
import { useSaveItem, useSendMutation } from "../../components/mutations";
import { usePageTitle } from "../../components/PageTitle";
import { Section } from "../../components/Section";
import { ErrorMessage, Loading } from "../../components/States";
import { useDraft } from "../../components/useDraft";
import { KeyResults } from "./KeyResults";
import * as messages from "./messages";
import css from "./Okrs.module.css";
import { ObjectiveStatusBadge, ProgressBar } from "./Progress";
import { STATUS_OPTIONS, useObjective, type ObjectiveDetails, type ObjectiveStatus } from "./queries";

/** One objective: its fields, its key results, its history, and its deletion. */
export default function ObjectivePage({ id }: { id: string }) {
  const objective = useObjective(id);
  const mayEdit = mayDecide(useMe().data);
  usePageTitle(objective.data?.title ?? "");
  if (objective.isPending) return <Loading />;
  if (!objective.data)
    return <ErrorMessage error={objective.error} onRetry={() => void objective.refetch()} />;
  const { title, percent, description, quarter, status } = objective.data;
  return (
    <Stack gap="md" className={css.editor}>
      <Section title={title}>
        <div className={css.result}>
          <span>
            {quarter} <ObjectiveStatusBadge status={status} />
          </span>
          <ProgressBar label={id} percent={percent} />
        </div>
        {mayEdit ? <ObjectiveForm objective={objective.data} /> : <Text size="sm">{description}</Text>}
      </Section>
      <Section title={messages.keyResults}>
        <KeyResults objective={objective.data} mayEdit={mayEdit} />
      </Section>
      <Section title={messages.history} about={messages.historyHint}>
        <ItemHistory changes={objective.data.history} />
      </Section>
      {mayEdit && <DeleteObjective objective={objective.data} />}
    </Stack>
  );
}

function ObjectiveForm({ objective }: { objective: ObjectiveDetails }) {
  const draft = useDraft(`objective:${objective.id}`, toFields(objective), objective.etag);
  const path = { objective_id: objective.id };
  const save = useSaveItem(["okrs", "one", objective.id], (body: Schemas["ObjectiveBody"], headers) =>
    callApi("put", "/api/objectives/{objective_id}", { path, body, headers }),
  );
  const { values } = draft;
  return (
    <EditForm label={messages.editObjective} draft={draft} save={save} toFields={toFields}>
      <TextInput
        label={messages.title}
        required
        maxLength={300}
        value={values.title}
        onChange={(event) => draft.set({ title: event.currentTarget.value })}
      />
      <Textarea
        label={messages.description}
        rows={3}
        maxLength={5000}
        value={values.description}
        onChange={(event) => draft.set({ description: event.currentTarget.value })}
      />
      <div className={css.numbers}>
        <TextInput
          label={messages.quarter}
          required
          pattern="[0-9]{4}-Q[1-4]"
          value={values.quarter}
          onChange={(event) => draft.set({ quarter: event.currentTarget.value })}
          error={fieldProblem(save.error, "/quarter")}
        />
        <NativeSelect
          label={messages.status}
          data={STATUS_OPTIONS}
          value={values.status}
          onChange={(event) => draft.set({ status: event.currentTarget.value as ObjectiveStatus })}
        />
      </div>
    </EditForm>
  );
}

function DeleteObjective({ objective }: { objective: ObjectiveDetails }) {
  const [, navigate] = useLocation();
  const remove = useSendMutation(
    (_: void) =>
      callApi("delete", "/api/objectives/{objective_id}", {
        path: { objective_id: objective.id },
        headers: { "if-match": objective.etag },
      }),
    [], // the objective is gone; the list loads itself
    () => navigate("/okrs"),
  );
  const count = objective.key_results.length;
  const also = count ? messages.alsoItsKeyResults(count) : "";
  return (
    <Section title={messages.deleteThisObjective}>
      <Confirm
        label={messages.deleteObjective}
        consequence={messages.objectiveIsDeleted(also)}
        sending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
      />
    </Section>
  );
}

const toFields = ({ title, description, quarter, status }: ObjectiveDetails): Schemas["ObjectiveBody"] => ({
  title,
  description,
  quarter,
  status,
});
