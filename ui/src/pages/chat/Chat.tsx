import { useParams } from "wouter";
import { mayDecide, useMe } from "../../api/me";
import { Empty } from "../../components/States";
import css from "./Chat.module.css";
import { Conversation } from "./Conversation";
import { ThreadPanel } from "./ThreadPanel";

/** The conversations at the side, one of them or a new one in the middle. */
export default function Chat() {
  const { thread } = useParams<{ thread?: string }>();
  const me = useMe();
  if (me.data && !mayDecide(me.data))
    return <Empty title="Chatting is for reviewers">Ask an admin if you want to talk to an agent.</Empty>;
  return (
    <div className={css.chat}>
      <ThreadPanel current={thread} />
      <Conversation thread={thread} />
    </div>
  );
}
