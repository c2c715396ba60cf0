import { percent, plural, rate } from "./format";
import type { Overview } from "./live";
import { ReachBar } from "./parts/reach";

/** What people ask first: is it good, and is all well? */
export function Summary({ overview }: { overview: Overview }) {
  const away = overview.nodes.filter((row) => row.state !== "live" && row.state !== "reconnecting").length;
  const total = overview.traffic.reduce((sum, part) => sum + part, 0);
  return (
    <section class="summary" aria-label="The cluster">
      <div class="tile lead">
        <p class="figure">{overview.share ? percent(overview.share[0]) : "–"}</p>
        <p class="what">{overview.share ? "of traffic stays inside one NUMA node" : "no traffic is known yet"}</p>
        {overview.share && <ReachBar share={overview.share} />}
      </div>
      <Tile figure={rate(total)} what="between pods that opted in, averaged over minutes" />
      <Tile figure={overview.members.toLocaleString("en")} what={`opted-in ${overview.members === 1 ? "pod" : "pods"} in ${plural(overview.groupsKnown, "group")}`} />
      <Tile
        figure={overview.nodes.length.toLocaleString("en")}
        what={away ? `nodes, ${away} of them not live` : `${overview.nodes.length === 1 ? "node" : "nodes"}, all live`}
        bad={away > 0}
      />
    </section>
  );
}

function Tile({ figure, what, bad = false }: { figure: string; what: string; bad?: boolean }) {
  return (
    <div class={bad ? "tile bad" : "tile"}>
      <p class="figure">{figure}</p>
      <p class="what">{what}</p>
    </div>
  );
}
