import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi, type Schemas } from "../api/client";
import { ErrorMessage, Loading } from "../components/States";
import { TimeAgo } from "../components/TimeAgo";
import { escapeInvisible } from "../components/escapeInvisible";
import css from "./ApprovalPage.module.css";
import * as messages from "./messages";

type Delivery = Schemas["DeliveryInfo"];

const STATUS_LABELS: Record<Delivery["status"], string> = {
  due: messages.queued,
  sending: messages.sending,
  sent: messages.upToDate,
  parked: messages.failedDeadLetter,
  dropped: messages.noLongerNeeded,
  grouped: messages.sentInBatch,
};

/** The notifications of a request, and whether each is up to date. */
export default function DeliveryList({ id }: { id: string }) {
  const deliveries = useQuery({
    queryKey: ["deliveries", id],
    queryFn: ({ signal }) =>
      callApi("get", "/api/approvals/{approval_id}/deliveries", { path: { approval_id: id }, signal }),
    refetchInterval: 5_000,
  });
  if (deliveries.isPending) return <Loading />;
  if (!deliveries.data)
    return <ErrorMessage error={deliveries.error} onRetry={() => void deliveries.refetch()} />;
  if (!deliveries.data.items.length) return <Text size="sm">{messages.noNotificationsWereSent}</Text>;
  return (
    <ul className={css.told} aria-label={messages.notifications}>
      {deliveries.data.items.map((delivery) => (
        <DeliveryItem key={delivery.id} delivery={delivery} />
      ))}
    </ul>
  );
}

function DeliveryItem({ delivery }: { delivery: Delivery }) {
  const { person, place, channel, status, sent_at, error } = delivery;
  const to = person ?? place;
  return (
    <Text component="li" size="sm">
      {to && `${escapeInvisible(to)}, `}
      {escapeInvisible(channel)}:{" "}
      {sent_at && (
        <>
          {messages.sent} <TimeAgo at={sent_at} />,{" "}
        </>
      )}
      {STATUS_LABELS[status]}
      {error && ` (${error})`}
    </Text>
  );
}
