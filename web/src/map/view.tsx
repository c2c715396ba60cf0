// The cluster as rooms: some nodes in detail, and where there are more, all of them as a field to choose from.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAnswer } from "../api";
import { plural } from "../format";
import type { Overview } from "../live";
import { NAMESPACE } from "../namespace";
import { ReachLegend } from "../parts/reach";
import { Waiting } from "../parts/waiting";
import { go, type Route } from "../route";
import type { GroupStory, Rooms } from "../types";
import { Field } from "./field";
import { Filter } from "./filter";
import { arrowed } from "./keys";
import { Lines } from "./lines";
import { inside, LINES_SHOWN, type LinesShown } from "./sums";
import { RoomCard } from "./room";
import { interesting, MOST_ROOMS } from "./interest";

/** Pods on the map: with more they are drawn without their names. */
const MOST_NAMED = 120;

export function MapView({ overview, route }: { overview: Overview; route: Route }) {
  const area = useRef<HTMLDivElement>(null);
  const shown: LinesShown = route.lines in LINES_SHOWN ? (route.lines as LinesShown) : "summed";
  const [hovered, setHovered] = useState<string | null>(null);
  const group = useAnswer<GroupStory>(route.filter ? `group?group=${encodeURIComponent(route.filter)}` : null, overview.version);
  const homes = route.filter ? [...new Set(group.value?.members?.map((member) => member.node))] : null;
  const names = useMemo(
    () => interesting(overview.nodes, route.rooms, homes, route.kind === "node" ? route.name : ""),
    [overview.nodes, route, homes?.join()],
  );
  const path = names.length ? `rooms?${names.map((name) => `node=${encodeURIComponent(name)}`).join("&")}` : null;
  const { value, error } = useAnswer<Rooms>(path, overview.version);
  const rooms = useLatest(value, path !== null);
  const selected = route.kind === "pod" ? (rooms?.nodes.flatMap((room) => room.pods).find((pod) => pod.pod === route.name)?.uid ?? null) : null;
  const focus = hovered ?? selected;
  const near = useMemo(() => neighbours(rooms, focus), [rooms, focus]);
  const lit = route.kind === "group" ? route.name : route.filter || null;
  const local = useMemo(() => (rooms ? inside(rooms.lines, rooms.nodes) : new Map<string, number>()), [rooms]);
  useEffect(() => {
    if (selected) area.current?.querySelector(`[data-box="${CSS.escape(selected)}"]`)?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const named = (rooms?.nodes.reduce((sum, room) => sum + room.pods.length, 0) ?? 0) <= MOST_NAMED;
  const elsewhere = rooms?.lines.filter((line) => line.elsewhere).length ?? 0;
  return (
    <>
      <div class="toolbar">
        <h2>Map</h2>
        <Filter overview={overview} filter={route.filter} />
        <span class="choice">
          <label for="lines">Lines</label>
          <select id="lines" value={shown} onChange={(event) => go({ lines: event.currentTarget.value === "summed" ? "" : event.currentTarget.value })}>
            {Object.entries(LINES_SHOWN).map(([value, words]) => <option key={value} value={value}>{words}</option>)}
          </select>
        </span>
        <ReachLegend />
      </div>
      {overview.nodes.length > MOST_ROOMS && <Field nodes={overview.nodes} rooms={names} route={route} />}
      {error && <p class="error" role="alert">{error}</p>}
      <div class="rooms" ref={area} onKeyDown={(event) => arrowed(event, area.current)}>
        {rooms?.nodes.map((room) => (
          <RoomCard
            key={room.name}
            room={room}
            row={overview.nodes.find((node) => node.name === room.name)}
            selected={selected}
            near={near}
            lit={lit}
            local={local}
            named={named}
            hover={setHovered}
          />
        ))}
        {rooms && <Lines lines={rooms.lines} shown={shown} focus={focus} lit={lit} rooms={rooms.nodes} area={area} />}
      </div>
      {!names.length && (route.filter && !group.value && !group.error ? <Waiting error="" /> : <Empty filter={route.filter} />)}
      {elsewhere > 0 && <p class="note">{plural(elsewhere, "line")} to pods on nodes that are not shown here.</p>}
      {rooms && rooms.lines_known > rooms.lines.length && <p class="note">The {rooms.lines.length} heaviest of {plural(rooms.lines_known, "line")} are shown.</p>}
    </>
  );
}

/** The rooms before stay until others are there: who reads or has the focus among them stays where they are. */
function useLatest(value: Rooms | null, asked: boolean): Rooms | null {
  const latest = useRef<Rooms | null>(null);
  latest.current = asked ? (value ?? latest.current) : null;
  return latest.current;
}

/** The pods that a pod exchanges anything with, itself too; null where none is in focus. */
function neighbours(rooms: Rooms | null, focus: string | null): Set<string> | null {
  if (!rooms || !focus) return null;
  return new Set([focus, ...rooms.lines.filter((line) => line.pods.includes(focus)).flatMap((line) => line.pods)]);
}

function Empty({ filter }: { filter: string }) {
  if (filter) return <p class="empty">No pod of this group is on any node. <button type="button" class="open" onClick={() => go({ filter: "" })}>Show all</button></p>;
  return <p class="empty">No enforcer has reported a node yet. <code>kubectl -n {NAMESPACE} get pods</code> shows whether they run.</p>;
}
