import { TextInput, type TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState, type Ref } from "react";

interface Props extends Omit<TextInputProps, "value" | "onChange"> {
  value: string;
  onChange: (text: string) => void;
  ref?: Ref<HTMLInputElement>;
}

const PAUSE = 300; // ms without a key before the list is read anew

/** A filter that is typed: what the address says counts, unless somebody is typing. */
export function TextFilter({ value, onChange, ...props }: Props) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  const send = useDebouncedCallback((typed: string) => {
    sent.current = typed.trim();
    onChange(sent.current);
  }, PAUSE);
  useEffect(() => {
    if (value !== sent.current) setText(value);
    sent.current = value;
  }, [value]);
  return (
    <TextInput
      {...props}
      value={text}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        send(currentTarget.value);
      }}
    />
  );
}
