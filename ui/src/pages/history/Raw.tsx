import css from "./History.module.css";

const MOST = 20_000;

/** As it is stored, folded; what is very long is cut, and says so. */
export function Raw({ name, text }: { name: string; text: string }) {
  return (
    <details className={css.fold}>
      <summary>{name}</summary>
      <pre className={css.raw} tabIndex={0} aria-label={name}>
        {text.length > MOST ? `${text.slice(0, MOST)} … and ${text.length - MOST} characters more` : text}
      </pre>
    </details>
  );
}
