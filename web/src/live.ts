// The cluster in short, kept up to date: by server-sent events.
import { EventSource } from "eventsource";
import { useEffect, useState } from "preact/hooks";
import { request } from "./access";
import { get, HANGS_AFTER_MS } from "./api";
import { claim } from "./colors";
import { byName } from "./format";
import type { Changes, GroupRow, NodeRow, Triple } from "./types";

const LOST_AFTER_MS = 5_000;

export type Link = "connecting" | "live" | "lost";

export interface Overview {
  version: number;
  nodes: NodeRow[];
  groups: GroupRow[];
  groupsKnown: number;
  traffic: Triple;
  share: Triple | null;
  members: number;
  /** Nodes whose enforcer sees no traffic. */
  unobserved: number;
  link: Link;
}

const NOTHING: Overview = { version: 0, nodes: [], groups: [], groupsKnown: 0, traffic: [0, 0, 0], share: null, members: 0, unobserved: 0, link: "connecting" };

function after(before: Overview, changes: Changes): Overview {
  const rows = new Map(changes.whole ? [] : before.nodes.map((row) => [row.name, row]));
  for (const row of changes.nodes) rows.set(row.name, row);
  for (const name of changes.gone) rows.delete(name);
  claim(changes.groups?.map((row) => row.group) ?? []);
  return {
    version: changes.version,
    nodes: [...rows.values()].sort((one, other) => byName(one.name, other.name)),
    groups: changes.groups ?? before.groups,
    groupsKnown: changes.groups_known ?? before.groupsKnown,
    traffic: changes.traffic ?? before.traffic,
    share: changes.share === undefined ? before.share : changes.share,
    members: changes.members ?? before.members,
    unobserved: changes.unobserved ?? before.unobserved,
    link: before.link,
  };
}

interface Reader {
  take(changes: Changes): void;
  linked(link: Link): void;
}

/** Follows the cluster until it is ended; a page that nobody sees follows nothing. */
function follow(reader: Reader): () => void {
  let version = 0;
  let source: EventSource | null = null;
  let timer = 0;
  let hanging = 0;
  const followed = new AbortController();

  const received = (changes: Changes) => {
    if (changes.version !== version) reader.take(changes);
    version = changes.version;
  };
  const begin = async () => {
    try {
      // The first answer is asked for: it comes packed, which events do not.
      received(await get<Changes>("overview", followed.signal));
    } catch {
      reader.linked("lost");
    }
  };
  const listen = () => {
    source = new EventSource(`api/v1/changes?since=${version}`, { fetch: request });
    watch();
    source.onopen = () => {
      watch();
      clearTimeout(timer);
      timer = 0;
      reader.linked("live");
    };
    source.onmessage = (event) => received(JSON.parse(event.data as string) as Changes);
    source.onerror = () => {
      // A stream that ends is no error: the source comes again by itself. It does not where it was refused.
      if (source?.readyState !== EventSource.CLOSED) {
        timer ||= window.setTimeout(() => reader.linked("lost"), LOST_AFTER_MS);
        return;
      }
      end();
      reader.linked("lost");
      timer = window.setTimeout(listen, LOST_AFTER_MS);
    };
  };
  /** A stream ends by itself after 50 s, and another begins: where none does, the one there is hangs. */
  const watch = () => {
    clearTimeout(hanging);
    hanging = window.setTimeout(() => {
      end();
      reader.linked("lost");
      listen();
    }, HANGS_AFTER_MS);
  };
  const end = () => {
    source?.close();
    source = null;
    clearTimeout(timer);
    clearTimeout(hanging);
    timer = 0;
  };
  const seen = () => {
    end();
    if (!document.hidden && !followed.signal.aborted) listen();
  };
  document.addEventListener("visibilitychange", seen, { signal: followed.signal });
  void begin().then(seen);
  return () => {
    followed.abort();
    end();
  };
}

export function useOverview(): Overview {
  const [overview, setOverview] = useState(NOTHING);
  useEffect(
    () =>
      follow({
        take: (changes) => setOverview((before) => after(before, changes)),
        linked: (link) => setOverview((before) => (before.link === link ? before : { ...before, link })),
      }),
    [],
  );
  return overview;
}
