import { PasswordInput, type PasswordInputProps } from "@mantine/core";
import { useState } from "react";
import * as messages from "./messages";

const MIN_LENGTH = 12; // characters, as the server counts them

/** Says while a password is typed that it is too short, and by how much. */
export function NewPasswordInput(props: Omit<PasswordInputProps, "onChange" | "error">) {
  const [length, setLength] = useState(0);
  const error = shortPasswordText(length);
  return (
    <PasswordInput
      {...props}
      autoComplete="new-password"
      minLength={MIN_LENGTH}
      error={error}
      aria-invalid={error !== ""} // the library sets it for other fields, but not for this one
      onChange={(event) => setLength(Array.from(event.currentTarget.value).length)}
    />
  );
}

/** Empty for an empty field, which is not wrong yet. */
export function shortPasswordText(length: number): string {
  const missing = MIN_LENGTH - length;
  if (length === 0 || missing <= 0) return "";
  return messages.tooShortMoreCharacters(missing);
}
