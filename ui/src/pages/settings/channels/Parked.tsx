import { Anchor, Button, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call, type Shapes } from "../../../api/client";
import { Loading, Problem } from "../../../components/States";
import { Ago } from "../../../components/Time";
import { useSending } from "../data";
import { Section } from "../Section";
import css from "../Settings.module.css";
import { message } from "./words";

/** What was given up; the call itself waits in the inbox all the same. */
export function Parked({ admin }: { admin: boolean }) {
  const parked = useInfiniteQuery({
    queryKey: ["deliveries"],
    queryFn: ({ signal, pageParam }) =>
      call("get", "/api/deliveries", { query: { status: "parked", limit: 50, cursor: pageParam }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    refetchInterval: 10_000,
  });
  const items = parked.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Section
      title="Messages that were given up"
      about="What will not be taken, or could not be sent for a day. The requests themselves are in the inbox all the same."
    >
      {parked.isPending && <Loading />}
      {parked.error && <Problem error={parked.error} again={() => void parked.refetch()} />}
      {parked.data && !items.length && <Text size="sm">There are none.</Text>}
      {items.length > 0 && (
        <ul className={css.list} aria-label="Messages that were given up">
          {items.map((delivery) => (
            <ParkedRow key={delivery.id} delivery={delivery} admin={admin} />
          ))}
        </ul>
      )}
      {parked.hasNextPage && (
        <Button
          variant="default"
          loading={parked.isFetchingNextPage}
          onClick={() => void parked.fetchNextPage()}
        >
          Show more
        </Button>
      )}
    </Section>
  );
}

function ParkedRow({ delivery, admin }: { delivery: Shapes["DeliveryInfo"]; admin: boolean }) {
  const again = useSending(
    (_: void, once) =>
      call("post", "/api/deliveries/{delivery_id}/retry", { path: { delivery_id: delivery.id }, once }),
    ["deliveries", "channels"],
  );
  return (
    <li className={css.row} data-delivery={delivery.id}>
      <Stack gap={2}>
        <Text>{message(delivery)}</Text>
        {delivery.error && (
          <Text size="sm" className={css.wrong}>
            {delivery.error}
          </Text>
        )}
        <Text size="sm" c="dimmed" component="div">
          Made <Ago at={delivery.created_at} />
          {delivery.approval_id && (
            <>
              {", about "}
              <Anchor component={Link} href={`/a/${delivery.approval_id}`} size="sm" underline="always">
                this request
              </Anchor>
            </>
          )}
        </Text>
        {again.error && <Problem error={again.error} />}
      </Stack>
      {admin && (
        <Button variant="default" loading={again.isPending} onClick={() => again.mutate()}>
          Send again
        </Button>
      )}
    </li>
  );
}
