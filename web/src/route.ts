// What is shown is in the address, so that it can be sent to somebody else: #view=map&pod=NAMESPACE/NAME.
import { useEffect, useState } from "preact/hooks";

export const VIEWS = ["map", "pods", "groups", "nodes"] as const;
export type View = (typeof VIEWS)[number];
export type Kind = "pod" | "group" | "node";

export interface Route {
  view: View;
  /** What the panel is about. */
  kind: Kind | null;
  name: string;
  /** Nodes that are shown as rooms, where not all are. */
  rooms: string[];
  filter: string;
  /** Which lines the map draws; empty: as it does at first. */
  lines: string;
  /** What the list of pods is searched for. */
  text: string;
  /** COLUMN or COLUMN,down: how the list is sorted; empty: as it is at first. */
  sort: string;
}

const KINDS: Kind[] = ["pod", "group", "node"];

function parsed(): Route {
  const values = new URLSearchParams(location.hash.slice(1));
  const kind = KINDS.find((one) => values.has(one)) ?? null;
  return {
    view: VIEWS.find((view) => view === values.get("view")) ?? "map",
    kind,
    name: kind ? (values.get(kind) ?? "") : "",
    rooms: values.getAll("room"),
    filter: values.get("filter") ?? "",
    lines: values.get("lines") ?? "",
    text: values.get("text") ?? "",
    sort: values.get("sort") ?? "",
  };
}

export function address(route: Route): string {
  const values = new URLSearchParams({ view: route.view });
  for (const key of ["filter", "lines", "text", "sort"] as const) if (route[key]) values.set(key, route[key]);
  for (const room of route.rooms) values.append("room", room);
  if (route.kind) values.set(route.kind, route.name);
  return `#${values.toString().replaceAll("%2F", "/")}`;
}

export function go(change: Partial<Route>): void {
  location.hash = address({ ...parsed(), ...change });
}

/** As `go`, without a step of its own on the way back: for what changes with every key. */
export function replace(change: Partial<Route>): void {
  history.replaceState(null, "", address({ ...parsed(), ...change }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function select(kind: Kind, name: string): void {
  go({ kind, name });
}

export function close(): void {
  go({ kind: null, name: "" });
}

export function useRoute(): Route {
  const [route, setRoute] = useState(parsed);
  useEffect(() => {
    const changed = () => setRoute(parsed());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
