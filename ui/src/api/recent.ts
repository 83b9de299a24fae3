/** What asks the person to sign in again; true once they did. */
type Ask = () => Promise<boolean>;

let ask: Ask | null = null;

/** The page says how it asks; the answer takes it back. */
export function asksBy(how: Ask): () => void {
  ask = how;
  return () => {
    if (ask === how) ask = null;
  };
}

/** Whether somebody signed in again, so that what was refused can be repeated. */
export async function signedInAgain(): Promise<boolean> {
  return ask ? await ask() : false;
}
