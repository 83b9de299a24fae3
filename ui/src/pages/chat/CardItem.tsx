import { lazy, Suspense } from "react";
import { Text } from "@mantine/core";
import type { Asked, Decided } from "./story";
import { useNear } from "./useNear";

const Card = lazy(async () => ({ default: (await import("../../card/Card")).ApprovalCard }));

/** A request of this thread or of a sub-agent's; far from the screen it is only a line. */
export function CardItem({
  asked,
  decided,
  onMoved,
}: {
  asked: Asked;
  decided?: Decided;
  onMoved: () => void;
}) {
  const [place, isNear] = useNear<HTMLDivElement>();
  const line = <Text size="sm">A request{decided ? `, ${decided.status}` : ""}</Text>;
  return (
    <div ref={place} data-card={asked.approval}>
      {asked.path.length > 1 && (
        <Text size="sm" mb={4}>
          Asked by {asked.path.join(" › ")}
        </Text>
      )}
      {isNear ? (
        <Suspense fallback={line}>
          <Card id={asked.approval} place="chat" initial={asked.shown} onMoved={onMoved} />
        </Suspense>
      ) : (
        line
      )}
    </div>
  );
}
