import { Switch } from "@mantine/core";
import css from "./Agents.module.css";
import * as messages from "./messages";

export const SWITCH_HELP = messages.switchHelp;

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
        label={messages.requireApproval}
        labelPosition="left"
        classNames={{ body: css.switchBody, label: css.touch }}
        aria-label={messages.requireApprovalFor(tool)}
        title={lockedReason || SWITCH_HELP}
        checked={checked}
        disabled={lockedReason !== "" || disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </div>
  );
}
