import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi, type Schemas } from "../api/client";
import { ErrorMessage, Loading } from "../components/States";
import { TimeAgo } from "../components/TimeAgo";
import { visible } from "../components/visible";
import css from "./ApprovalPage.module.css";

type Delivery = Schemas["DeliveryInfo"];

const STANDS: Record<Delivery["status"], string> = {
  due: "queued",
  sending: "sending",
  sent: "up to date",
  parked: "failed, dead letter",
  dropped: "no longer needed",
  grouped: "sent in a batch",
};

/** Where people heard of a request, and whether what they see is up to date. */
export default function DeliveryList({ id }: { id: string }) {
  const told = useQuery({
    queryKey: ["deliveries", id],
    queryFn: ({ signal }) =>
      callApi("get", "/api/approvals/{approval_id}/deliveries", { path: { approval_id: id }, signal }),
    refetchInterval: 5_000,
  });
  if (told.isPending) return <Loading />;
  if (!told.data) return <ErrorMessage error={told.error} again={() => void told.refetch()} />;
  if (!told.data.items.length)
    return <Text size="sm">No notifications were sent. The request is in the inbox.</Text>;
  return (
    <ul className={css.told} aria-label="Notifications">
      {told.data.items.map((delivery) => (
        <Told key={delivery.id} delivery={delivery} />
      ))}
    </ul>
  );
}

function Told({ delivery }: { delivery: Delivery }) {
  const { person, place, channel, status, sent_at, error } = delivery;
  const to = person ?? place;
  return (
    <Text component="li" size="sm">
      {to && `${visible(to)}, `}
      {visible(channel)}:{" "}
      {sent_at && (
        <>
          sent <TimeAgo at={sent_at} />,{" "}
        </>
      )}
      {STANDS[status]}
      {error && ` (${error})`}
    </Text>
  );
}
