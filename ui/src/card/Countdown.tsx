import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { approvalKey, type Read } from "../api/approvals";
import { span, useTick } from "../components/Time";
import { isLate, secondsLeft } from "./clock";
import css from "./Card.module.css";

const LOOK_AGAIN = 1_500;

/** Time left until it expires, amber in its last fifth; at the end it looks what became of the call. */
export function Countdown({ now }: { now: Read }) {
  const queries = useQueryClient();
  const left = secondsLeft(now, useTick()) ?? 0;
  const isOver = left <= 0;
  useEffect(() => {
    if (!isOver) return;
    const look = () => void queries.invalidateQueries({ queryKey: approvalKey(now.id) });
    look();
    const timer = setInterval(look, LOOK_AGAIN);
    return () => clearInterval(timer);
  }, [isOver, queries, now.id]);
  return (
    <span className={css.left} data-late={isLate(left, now) || undefined}>
      {isOver ? "time is up" : `${span(left)} left`}
    </span>
  );
}
