import { lazy, Suspense } from "react";
import { useSearchParams } from "wouter";
import { Identities } from "../Identities";
import { Section } from "../Section";

const IsThisYou = lazy(() => import("./IsThisYou"));

/** Who one is in Slack and the like, and the question that a link from there leads to. */
export function Elsewhere() {
  const [search, setSearch] = useSearchParams();
  const link = search.get("link");
  return (
    <Section
      title="Accounts elsewhere"
      about="Where you can answer as yourself. To add one, press a button of a message there, and follow the link that you get."
    >
      <Identities whose="mine" />
      {link && (
        <Suspense>
          <IsThisYou link={link} onClose={() => setSearch({}, { replace: true })} />
        </Suspense>
      )}
    </Section>
  );
}
