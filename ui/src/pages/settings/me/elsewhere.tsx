import { lazy, Suspense } from "react";
import { useSearchParams } from "wouter";
import { Identities } from "../identities";
import { Section } from "../section";

const IsThisYou = lazy(() => import("./is_this_you"));

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
