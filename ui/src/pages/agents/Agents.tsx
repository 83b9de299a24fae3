import { useLocation } from "wouter";
import { Agent } from "./Agent";
import { AgentList } from "./List";

/** All agents, or one of them with its tools. */
export default function Agents() {
  useLocation(); // another address is another agent
  const name = decodeURIComponent(location.pathname.split("/")[2] ?? ""); // the router decodes only half of it
  return name ? <Agent key={name} name={name} /> : <AgentList />;
}
