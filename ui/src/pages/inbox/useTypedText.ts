import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";

const TYPING_PAUSE = 300; // ms without a key press before the list is reloaded

/** The text of a filter: the URL decides, unless the user is typing. */
export function useTypedText(value: string, onChange: (text: string) => void) {
  const [text, setTyped] = useState(value);
  const sent = useRef(value);
  const apply = (typed: string) => {
    sent.current = typed.trim();
    onChange(sent.current);
  };
  const send = useDebouncedCallback(apply, TYPING_PAUSE);
  useEffect(() => {
    if (value !== sent.current) setTyped(value);
    sent.current = value;
  }, [value]);
  const setText = (typed: string) => {
    setTyped(typed);
    send(typed);
  };
  const sendNow = (typed: string) => {
    setText(typed); // replaces what is still to be sent
    apply(typed);
  };
  return { text, setText, sendNow };
}
