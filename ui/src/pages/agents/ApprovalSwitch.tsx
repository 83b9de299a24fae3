import { Switch } from "@mantine/core";
import css from "./Agents.module.css";

export const SWITCH_HELP =
  "On: this agent needs approval to run the tool, even where a rule would allow it. " +
  "Off: it runs without approval, unless a policy rule asks.";

/** Whether a tool requires approval; `lockedReason` says why it cannot be changed, if so. */
export function ApprovalSwitch({
  tool,
  checked,
  lockedReason = "",
  disabled = false,
  onChange,
}: {
  tool: string;
  checked: boolean;
  lockedReason?: string;
  disabled?: boolean;
  onChange: (on: boolean) => void;
}) {
  return (
    <div className={css.switch}>
      <Switch
        label="Require approval?"
        labelPosition="left"
        classNames={{ body: css.switchBody, label: css.touch }}
        aria-label={`Require approval for ${tool}?`}
        title={lockedReason || SWITCH_HELP}
        checked={checked}
        disabled={lockedReason !== "" || disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </div>
  );
}
