import { lazy, Suspense, useEffect, useState } from "react";
import type { Myself } from "../api/me";
import { asksBy } from "../api/recent";

const PasswordAgain = lazy(() => import("./PasswordAgain"));

type Answer = (again: boolean) => void;

/** What lasts longer than a session needs a recent sign-in: asked for where it is needed, and then it goes on. */
export function SignInAgain({ me }: { me: Myself }) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  useEffect(() => asksBy(() => new Promise<boolean>((resolve) => setAnswer(() => resolve))), []);
  if (!answer) return null;
  const end: Answer = (again) => {
    setAnswer(null);
    answer(again);
  };
  return (
    <Suspense fallback={null}>
      <PasswordAgain me={me} onEnd={end} />
    </Suspense>
  );
}
