import type { NodeRow } from "../types";

const STATES: Record<NodeRow["state"], [string, string]> = {
  live: ["live", "Its enforcer reports, and pods that start there are placed"],
  reconnecting: ["reconnecting", "Its enforcer's report stream is closed; its last report still counts for a while"],
  unregistered: ["not registered", "Its enforcer is not registered with the container runtime: pods start unpinned"],
  lost: ["lost", "Its enforcer's report stream is closed"],
  silent: ["silent", "Its enforcer has sent nothing for a while"],
};

export function State({ state }: { state: NodeRow["state"] }) {
  const [word, explanation] = STATES[state];
  return <span class={`state state-${state}`} title={explanation}>{word}</span>;
}
