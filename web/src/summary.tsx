import { percent, plural, rate } from "./format";
import type { Overview } from "./live";
import { ReachBar } from "./parts/reach";

/** What people ask first: is it good, and is all well? */
export function Summary({ overview }: { overview: Overview }) {
  const away = overview.nodes.filter((row) => row.state !== "live" && row.state !== "reconnecting").length;
  const total = overview.traffic.reduce((sum, part) => sum + part, 0);
  return (
    <section class="summary" aria-label="The cluster">
      {overview.share ? (
        <div class="tile lead">
          <p class="figure">{percent(overview.share[0])}</p>
          <p class="what">of traffic stays inside one NUMA node</p>
          <ReachBar share={overview.share} />
        </div>
      ) : (
        <div class="tile">
          <p><strong>No traffic is known yet</strong></p>
          <p class="what">{whyNone(overview)}</p>
        </div>
      )}
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

/** Why no traffic is known, and what it means. */
function whyNone({ nodes, unobserved, members }: Overview): string {
  if (!members) return "No pod has opted in: the annotation group.numakin.io is all it needs.";
  const still = "Pods are placed by their groups alone.";
  if (!unobserved) return `Flows between opted-in pods show within a minute. ${still}`;
  const which = unobserved === nodes.length ? "No node observes" : `${unobserved} of ${plural(nodes.length, "node")} do not observe`;
  return `${which} traffic: kubectl numakin doctor says why. ${still}`;
}

function Tile({ figure, what, bad = false }: { figure: string; what: string; bad?: boolean }) {
  return (
    <div class={bad ? "tile bad" : "tile"}>
      <p class="figure">{figure}</p>
      <p class="what">{what}</p>
    </div>
  );
}
