// One group: how local it is, over time and beside what else could be; its workloads and who of them talks to whom.
import { percent, place, plural, short } from "../format";
import { Answered } from "../parts/answered";
import { Open } from "../parts/links";
import { ReachBar } from "../parts/reach";
import { Roster } from "../parts/roster";
import { Series } from "../parts/series";
import { Swatch } from "../parts/swatch";
import { go } from "../route";
import type { Column } from "../tables/sorting";
import type { GroupStory, Regrouping } from "../types";
import { WorkloadGraph } from "./workloads";

export function GroupPanel({ name, version }: { name: string; version: number }) {
  return (
    <Answered<GroupStory> path={`group?group=${encodeURIComponent(name)}`} version={version}>
      {(story) => (
        <>
          <p class="actions">
            <Swatch group={name} /> {plural(story.members_known, "pod")}
            <button type="button" class="open" onClick={() => go({ view: "map", filter: name })}>Show only this group on the map</button>
          </p>
          <Compared story={story} />
          {story.regroup && <Cut regroup={story.regroup} />}
          <section>
            <h3>Over time</h3>
            <Series points={story.series} now={story.now} compared={story.compared} />
          </section>
          <section>
            <h3>Who talks to whom</h3>
            <WorkloadGraph story={story} />
          </section>
          <Reasons story={story} />
          <Members story={story} />
        </>
      )}
    </Answered>
  );
}

const WAYS = [
  ["best", "best possible", "what the planner finds when all of the group may go anywhere now"],
  ["lowest_first", "lowest first", "kube-scheduler's emptiest node, there the lowest NUMA node that fits, as the kubelet does"],
  ["spread", "spread", "kube-scheduler's emptiest node, there the emptiest NUMA node"],
] as const;

function Compared({ story }: { story: GroupStory }) {
  const of = story.by === "traffic" ? "of its traffic" : "of its pairs of pods (no traffic is known)";
  return (
    <section>
      <h3>Inside one NUMA node, {of}</h3>
      {story.shares && <ReachBar share={story.shares} />}
      <table class="compared">
        <tbody>
          <Way word="now" title="as the pods are" share={story.now} kind="now" />
          {WAYS.map(([key, word, title]) => <Way key={key} word={word} title={title} share={story.compared?.[key] ?? null} kind={key} />)}
        </tbody>
      </table>
      {!story.compared && <p class="note">A group of one, or of very many, is not placed anew to compare; others are, one after another: a large one takes seconds.</p>}
    </section>
  );
}

function Way({ word, title, share, kind }: { word: string; title: string; share: number | null; kind: string }) {
  return (
    <tr title={title}>
      <th scope="row">{word}</th>
      <td class="bar"><span class={`bar-${kind}`} style={{ width: `${100 * (share ?? 0)}%` }} /></td>
      <td class="number">{share === null ? "–" : percent(share)}</td>
    </tr>
  );
}

type Step = Regrouping["steps"][number];

const STEPS: Column<Step>[] = [
  { name: "pod", by: (row) => row.pod },
  { name: "now", by: (row) => place(row.node, row.numa_nodes) },
  { name: "then", by: (row) => place(row.to_node, [row.to_numa_node]) },
];

function Cut({ regroup }: { regroup: NonNullable<GroupStory["regroup"]> }) {
  const plan = regroup.plan;
  return (
    <section>
      <h3>Cut over nodes</h3>
      <p class="note">It is {regroup.why}{plan && `, with ${percent(plan.reached)} inside one NUMA node instead of ${percent(plan.locality)}`}.</p>
      {plan && (
        <Roster
          label="Pods that would come anew elsewhere"
          rows={plan.steps}
          columns={STEPS}
          words={(row) => `${row.pod} ${row.node} ${row.to_node}`}
          row={(row) => (
            <tr key={row.uid}>
              <th scope="row" class="clipped" title={row.pod}><Open kind="pod" name={row.pod}>{short(row.pod)}</Open></th>
              <td>{place(row.node, row.numa_nodes)}</td>
              <td>{place(row.to_node, [row.to_numa_node])}</td>
            </tr>
          )}
        />
      )}
    </section>
  );
}

function Reasons({ story }: { story: GroupStory }) {
  if (!story.reasons.length) return null;
  return (
    <section>
      <h3>Why these belong together</h3>
      <ul class="reasons">
        {story.reasons.map((row) => <li key={row.workload}><strong>{short(row.workload)}</strong>: {row.reason}</li>)}
      </ul>
    </section>
  );
}

type Member = GroupStory["members"][number];

const MEMBERS: Column<Member>[] = [
  { name: "pod", by: (row) => row.pod },
  { name: "workload", by: (row) => row.workload },
  { name: "where", by: (row) => place(row.node, row.numa_nodes) },
];

function Members({ story }: { story: GroupStory }) {
  return (
    <section>
      <h3>Members</h3>
      <Roster
        label="Members"
        rows={story.members}
        columns={MEMBERS}
        words={(row) => `${row.pod} ${row.workload} ${row.node}`}
        row={(row) => (
          <tr key={row.uid}>
            <th scope="row" class="clipped" title={row.pod}><Open kind="pod" name={row.pod}>{short(row.pod)}</Open></th>
            <td>{short(row.workload)}</td>
            <td>{place(row.node, row.numa_nodes)}</td>
          </tr>
        )}
      />
      {story.members_known > story.members.length && <p class="note">{story.members.length} of {plural(story.members_known, "member")}.</p>}
    </section>
  );
}
