import { useId } from "react";
import css from "./Choice.module.css";

interface ChoiceProps {
  label: string;
  options: { value: string; label: string }[];
  value: string;
  onChange: (value: string) => void;
}

/** A few options side by side, of which one is chosen. */
export function Choice({ label, options, value, onChange }: ChoiceProps) {
  const name = useId();
  return (
    <div role="radiogroup" aria-label={label} className={css.choice}>
      {options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            name={name}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>{option.label}</span>
        </label>
      ))}
    </div>
  );
}
