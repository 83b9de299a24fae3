import { Badge, List, Text } from "@mantine/core";
import type { PolicyDiff, RuleChange } from "./data";
import { summedUp } from "./words";

/** What a draft changes, by rules and not by lines. */
export function RuleDiff({ diff }: { diff: PolicyDiff }) {
  if (!summedUp(diff))
    return <Text size="sm">The rules say the same; only comments or the layout differ.</Text>;
  return (
    <List size="sm" spacing={4}>
      {diff.rules.map((change) => (
        <List.Item key={`${change.kind} ${change.rule}`}>
          <Badge variant="default" size="sm" mr={6}>
            {change.kind}
          </Badge>
          <b>{change.rule}</b> {place(change)}
          {change.kind === "changed" && <Facets changes={change.changes} />}
        </List.Item>
      ))}
      {diff.defaults.length > 0 && (
        <List.Item>
          Defaults
          <Facets changes={diff.defaults} />
        </List.Item>
      )}
      {diff.agents.length > 0 && (
        <List.Item>
          Switches of agents
          <Facets changes={diff.agents} />
        </List.Item>
      )}
    </List>
  );
}

function Facets({ changes }: { changes: RuleChange["changes"] }) {
  return (
    <List size="sm" withPadding>
      {changes.map(({ key, old, new: now }) => (
        <List.Item key={key}>
          {key}: {old ?? "not given"} → {now ?? "not given"}
        </List.Item>
      ))}
    </List>
  );
}

function place({ kind, old_place, new_place, old_name, moved }: RuleChange): string {
  if (kind === "renamed") return `was called “${old_name}”`;
  if (kind === "added") return `at place ${new_place}`;
  return moved && kind !== "removed" ? `from place ${old_place} to ${new_place}` : "";
}
