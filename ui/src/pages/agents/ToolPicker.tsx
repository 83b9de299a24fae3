import { Badge, Button, Checkbox, CloseButton, Fieldset, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { ErrorMessage, Loading } from "../../components/States";
import { setSwitch, VERDICT_NAMES } from "./agentChange";
import type { AgentDraft } from "./agentDraft";
import css from "./Agents.module.css";
import { ApprovalSwitch } from "./ApprovalSwitch";
import * as messages from "./editorMessages";
import { useAllTools } from "./queries";
import {
  deselectGroup,
  deselectTool,
  groupTools,
  isSelected,
  otherEntries,
  searchTools,
  selectableTools,
  selectGroup,
  selectTool,
  type SelectableTool,
  type ToolGroup,
} from "./toolSelection";

const SHOWN_ROWS = 100; // more are shown on demand

interface Props {
  entries: string[];
  switches: Record<string, boolean>;
  onChange: (fields: Partial<AgentDraft>) => void;
  error?: string;
}

/** The agent's tools: a searchable list by pack and MCP server, each with its approval switch. */
export function ToolPicker({ entries, switches, onChange, error }: Props) {
  const tools = useAllTools();
  const [query, setQuery] = useState("");
  const [shownRows, setShownRows] = useState(SHOWN_ROWS);
  const known = useMemo(() => selectableTools(tools.data?.items ?? []), [tools.data]);
  const found = useMemo(() => searchTools(known, query), [known, query]);
  const groups = groupTools(found.slice(0, shownRows));
  const selectedCount = known.filter((tool) => isSelected(entries, tool)).length;
  return (
    <Fieldset legend={messages.tools}>
      <Stack gap="sm">
        <TextInput
          label={messages.searchTools}
          type="search"
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
        />
        <Text size="sm" role="status">
          {tools.data && messages.ofToolsSelected(selectedCount, known.length)}
          {query && messages.foundSuffix(found.length)}
          {tools.data?.isComplete === false && messages.moreToolsThanListed}
        </Text>
        {tools.isPending && <Loading label={messages.loadingTools} />}
        {tools.error && <ErrorMessage error={tools.error} onRetry={() => void tools.refetch()} />}
        {groups.map((group) => (
          <ToolGroupSection
            key={group.name}
            group={group}
            whole={{ ...group, tools: known.filter((tool) => tool.group === group.name) }}
            known={known}
            entries={entries}
            switches={switches}
            onChange={onChange}
          />
        ))}
        {found.length > shownRows && (
          <Button variant="default" onClick={() => setShownRows(shownRows + SHOWN_ROWS)}>
            {messages.showMoreTools}
          </Button>
        )}
        <OtherEntries entries={entries} known={known} onChange={onChange} />
        {error && (
          <Text size="sm" c="red" role="alert">
            {error}
          </Text>
        )}
      </Stack>
    </Fieldset>
  );
}

interface GroupProps extends Omit<Props, "error"> {
  group: ToolGroup;
  /** The group with all its tools, also those that the search leaves out. */
  whole: ToolGroup;
  known: SelectableTool[];
}

/** The tools of a pack or MCP server, with a checkbox for all of them. */
function ToolGroupSection({ group, whole, known, entries, switches, onChange }: GroupProps) {
  const count = whole.tools.filter((tool) => isSelected(entries, tool)).length;
  const isAll = count === whole.tools.length;
  return (
    <section className={css.group} aria-label={messages.toolsOfSource(group.label)}>
      <div className={css.groupHead}>
        <Checkbox
          label={messages.allOfSource(group.label)}
          classNames={{ body: css.check, labelWrapper: css.checkLabel, label: css.groupLabel }}
          checked={isAll}
          indeterminate={count > 0 && !isAll}
          onChange={(event) =>
            onChange({
              tools: event.currentTarget.checked
                ? selectGroup(entries, whole)
                : deselectGroup(entries, whole, known),
            })
          }
        />
        <Text size="sm" c="dimmed">
          {messages.selectedOf(count, whole.tools.length)}
          {entries.includes(whole.name) && messages.includingToolsAddedLater}
        </Text>
      </div>
      <ul className={css.plain} aria-label={messages.toolsOfSource(group.label)}>
        {group.tools.map((tool) => (
          <Choice
            key={tool.name}
            tool={tool}
            isChosen={isSelected(entries, tool)}
            switches={switches}
            onSelect={(on) =>
              onChange({ tools: on ? selectTool(entries, tool) : deselectTool(entries, tool, known) })
            }
            onSwitch={(on) => onChange({ tool_approvals: setSwitch(switches, tool, on) })}
          />
        ))}
      </ul>
    </section>
  );
}

function Choice({
  tool,
  isChosen,
  switches,
  onSelect,
  onSwitch,
}: {
  tool: SelectableTool;
  isChosen: boolean;
  switches: Record<string, boolean>;
  onSelect: (on: boolean) => void;
  onSwitch: (on: boolean) => void;
}) {
  const lockedReason = tool.always_asks ? messages.itAlwaysNeedsApproval(tool.always_asks) : "";
  return (
    <li className={css.choice} data-choice={tool.name}>
      <Checkbox
        label={
          <span className={css.name}>
            <Text span size="sm" ff="monospace" fw={600}>
              {tool.name}
            </Text>
            <Badge variant="default" size="sm">
              {tool.effect ?? messages.effectUnknown}
            </Badge>
          </span>
        }
        description={tool.description || undefined}
        aria-label={tool.name}
        classNames={{ body: css.check, labelWrapper: css.checkLabel }}
        checked={isChosen}
        onChange={(event) => onSelect(event.currentTarget.checked)}
      />
      {isChosen ? (
        <ApprovalSwitch
          tool={tool.name}
          checked={tool.always_asks !== "" || (switches[tool.name] ?? tool.asks_by_default)}
          lockedReason={lockedReason}
          onChange={onSwitch}
        />
      ) : (
        <Text size="sm" c="dimmed" className={css.byDefault}>
          {VERDICT_NAMES[tool.verdict]}
        </Text>
      )}
    </li>
  );
}

/** Packs, patterns, and names without a tool; more can be added. */
function OtherEntries({
  entries,
  known,
  onChange,
}: Pick<Props, "entries" | "onChange"> & { known: SelectableTool[] }) {
  const [added, setAdded] = useState("");
  const others = otherEntries(entries, known);
  const add = () => {
    const entry = added.trim();
    if (entry && !entries.includes(entry)) onChange({ tools: [...entries, entry] });
    setAdded("");
  };
  return (
    <Stack gap="xs">
      {others.length > 0 && (
        <ul className={css.chips} aria-label={messages.packsAndPatterns}>
          {others.map(({ entry, count }) => (
            <li key={entry} className={css.chip}>
              <Text span size="sm" ff="monospace">
                {entry}
              </Text>
              <Text span size="sm" c="dimmed">
                {messages.noToolHere(count)}
              </Text>
              <CloseButton
                size="sm"
                aria-label={messages.removeEntry(entry)}
                onClick={() => onChange({ tools: entries.filter((each) => each !== entry) })}
              />
            </li>
          ))}
        </ul>
      )}
      <Group align="end" gap="xs" wrap="nowrap">
        <TextInput
          label={messages.addPattern}
          description={messages.patternHint}
          className={css.grow}
          maxLength={200}
          value={added}
          onChange={(event) => setAdded(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
            event.preventDefault();
            add();
          }}
        />
        <Button variant="default" disabled={!added.trim()} onClick={add}>
          {messages.add}
        </Button>
      </Group>
    </Stack>
  );
}
