// One pod: where it is, why, what else was weighed, whom it talks to, and how it was moved.
import { ago, place, plural, rate, short } from "../format";
import { Answered } from "../parts/answered";
import { Open } from "../parts/links";
import { ReachBar, ReachTag } from "../parts/reach";
import { Swatch } from "../parts/swatch";
import type { Happened, Peer, PodStory, ScoredNode } from "../types";

export function PodPanel({ name, version }: { name: string; version: number }) {
  return (
    <Answered<PodStory> path={`pod?${asked(name)}`} version={version}>
      {(story) => (
        <>
          <Where story={story} />
          <Why story={story} />
          <Peers story={story} />
          <Weighed story={story} />
          <Moves moves={story.moves} />
        </>
      )}
    </Answered>
  );
}

/** By NAMESPACE/NAME; by its uid where that is all that is known of it yet. */
function asked(name: string): string {
  const [namespace = "", pod] = name.split("/").map(encodeURIComponent);
  return pod === undefined ? `uid=${namespace}` : `namespace=${namespace}&pod=${pod}`;
}

function Where({ story }: { story: PodStory }) {
  return (
    <section aria-label="Where it is">
      <dl class="facts">
        <dt>Where</dt>
        <dd>{story.place ? <><Open kind="node" name={story.place.node} />, NUMA {story.place.numa_nodes.join(", ")}</> : "nowhere now"}</dd>
        <dt>Group</dt>
        <dd>{story.group ? <><Swatch group={story.group} /> <Open kind="group" name={story.group} /></> : "none yet: it is found by traffic"}</dd>
        <dt>Workload</dt>
        <dd>{story.workload || "–"}</dd>
      </dl>
      {story.expected && (
        <p class="note">
          It is {story.expected.bound ? "bound to" : "scored best on"} {place(story.expected.node, story.expected.numa_nodes)}; its room is held for {ago(story.expected.expires_in_seconds)} more.
        </p>
      )}
    </section>
  );
}

const OUTCOMES: Record<string, string> = {
  kept: "kept: it is where the extender nominated it",
  declined: "declined: what was nominated did not fit any more",
  late: "late: the nomination came after the container",
  unpromised: "there was none: the node decided alone",
};

const EVENTS: Record<string, string> = {
  create: "when the container was created",
  synchronize: "when the enforcer took over what ran",
  update: "when it was resized",
  yielded: "another owner sets its CPUs",
  conflict: "left to another NRI plugin, which sets its CPUs too",
  vm: "left open, as it runs in a virtual machine",
  refused: "left alone, as the kernel refused its cpuset",
  release: "released: nothing is pinned on its node",
  room: "when room came free",
  machine: "when the machine changed",
  "let out": "let out, as its home is hot",
  "home again": "home again, as its home is cool",
  "read back": "when its cgroup was read back",
  nomination: "its nomination came too late",
  move: "it was moved",
};

function Why({ story }: { story: PodStory }) {
  const latest = story.happened.filter((row) => row.event !== "move");
  return (
    <section>
      <h3>Why it is there</h3>
      {story.summary && <p class="why">{story.summary}.</p>}
      {!latest.length && <p class="empty">No enforcer has reported a decision yet.</p>}
      {latest.map((row, at) => (
        <Decision key={at} row={row} />
      ))}
    </section>
  );
}

function Decision({ row }: { row: Happened }) {
  return (
    <article class="decision">
      <p>
        <strong>{row.container}</strong> on NUMA {row.numa_nodes || "any"}, {EVENTS[row.event] ?? row.event}
      </p>
      <ul class="reasons">
        {row.reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      <dl class="facts">
        <dt>CPUs</dt>
        <dd>{row.cpus || "all"}</dd>
        <dt>Memory of</dt>
        <dd>{row.mems ? `NUMA ${row.mems}` : "any NUMA node"}</dd>
        <dt>Nomination</dt>
        <dd class={`outcome outcome-${row.nomination}`}>
          {row.nominated && `NUMA ${row.nominated}, `}
          {OUTCOMES[row.nomination] ?? row.nomination}
        </dd>
      </dl>
    </article>
  );
}

function Peers({ story }: { story: PodStory }) {
  return (
    <section>
      <h3>Whom it talks to</h3>
      {story.share && <ReachBar share={story.share} />}
      {!story.peers.length && <p class="empty">No traffic with pods that opted in is known.</p>}
      {story.peers.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Peers">
          <table>
            <thead>
              <tr><th>peer</th><th>where</th><th class="number">sent</th><th class="number">received</th></tr>
            </thead>
            <tbody>
              {story.peers.map((peer) => <PeerRow key={peer.uid} peer={peer} here={story.place?.node ?? ""} />)}
            </tbody>
          </table>
        </div>
      )}
      {story.peers_known > story.peers.length && <p class="note">The {story.peers.length} heaviest of {plural(story.peers_known, "peer")}.</p>}
    </section>
  );
}

function PeerRow({ peer, here }: { peer: Peer; here: string }) {
  return (
    <tr>
      <th scope="row" class="clipped" title={peer.pod}><Open kind="pod" name={peer.pod}>{short(peer.pod)}</Open></th>
      <td><ReachTag reach={peer.reach}>{peer.node === here ? `NUMA ${peer.numa_nodes.join(", ")} here` : place(peer.node, peer.numa_nodes)}</ReachTag></td>
      <td class="number">{rate(peer.sent)}</td>
      <td class="number">{rate(peer.received)}</td>
    </tr>
  );
}

function Weighed({ story }: { story: PodStory }) {
  if (!story.scored) {
    return (
      <section>
        <h3>What else was weighed</h3>
        <p class="empty">{story.unscored ? `${story.unscored}.` : "Its scores are not remembered: it was scored before this extender's time, or many pods ago."}</p>
      </section>
    );
  }
  const { nodes, nodes_scored, seconds_ago } = story.scored;
  return (
    <section>
      <h3>What else was weighed</h3>
      <p class="note">
        {plural(nodes_scored, "node")} scored {ago(seconds_ago)} ago{nodes.length < nodes_scored ? `, the best ${nodes.length} here` : ""}.
      </p>
      {nodes.map((row) => <Scored key={row.node} row={row} here={row.node === story.place?.node} />)}
    </section>
  );
}

function Scored({ row, here }: { row: ScoredNode; here: boolean }) {
  return (
    <details class="scored" open={here}>
      <summary>
        <span class="score" title="Score, 0 to 10">
          <span class="score-bar" style={{ width: `${row.score * 10}%` }} aria-hidden="true" />
          <span class="score-number">{row.score}</span>
        </span>
        <span>{row.numa_nodes === undefined ? row.node : place(row.node, row.numa_nodes)}</span>
        {here && <span class="tag">it is here</span>}
        {row.fits === false && <span class="tag">does not fit</span>}
      </summary>
      <ul class="reasons">
        {row.reasons.map((reason) => <li key={reason}>{reason}</li>)}
        {row.data_age_seconds !== undefined && <li>on a report {ago(row.data_age_seconds)} old</li>}
      </ul>
    </details>
  );
}

function Moves({ moves }: { moves: Happened[] }) {
  return (
    <section>
      <h3>Moves</h3>
      {!moves.length && <p class="empty">It has not been moved.</p>}
      {moves.map((row, at) => <Decision key={at} row={row} />)}
    </section>
  );
}
