import { useEffect } from "preact/hooks";
import { useAccess } from "./access";
import { BareHeader, Header } from "./header";
import { useOverview, type Link } from "./live";
import { MapView } from "./map/view";
import { NAMESPACE } from "./namespace";
import { Panel } from "./panels/panel";
import { TokenForm } from "./parts/token";
import { close, useRoute } from "./route";
import { Summary } from "./summary";
import { GroupsTable } from "./tables/groups";
import { NodesTable } from "./tables/nodes";
import { PodsTable } from "./tables/pods";

export function App() {
  const { refusal } = useAccess();
  if (refusal === null) return <Cluster />;
  return (
    <>
      <BareHeader />
      <TokenForm refusal={refusal} />
    </>
  );
}

const TITLES = { map: "Map", pods: "Pods", groups: "Groups", nodes: "Nodes" };

/** Before the first answer, and where none comes. */
function NoAnswer({ link }: { link: Link }) {
  if (link !== "lost") return <p class="first empty">Waiting for the extender's first answer…</p>;
  return (
    <div class="first" role="alert">
      <p class="error">The extender does not answer.</p>
      <p class="what">
        The page tries again by itself. Does the extender run: <code>kubectl -n {NAMESPACE} get pods</code>? Behind <code>kubectl proxy</code> or <code>kubectl port-forward</code>: does that still run?
      </p>
    </div>
  );
}

function Cluster() {
  const overview = useOverview();
  const route = useRoute();
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key === "Escape") close();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => {
    document.title = `${route.kind ? route.name : TITLES[route.view]} · numakin`;
  }, [route.kind, route.name, route.view]);
  // Groups get their colours from the overview, so that they are the same on every screen.
  const asked = overview.version ? route.kind : null;
  const Content = { map: MapView, pods: PodsTable, groups: GroupsTable, nodes: NodesTable }[route.view];
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
        To the content
      </a>
      <Header overview={overview} route={route} />
      {overview.version > 0 ? <Summary overview={overview} /> : <NoAnswer link={overview.link} />}
      <div class={route.kind ? "stage with-panel" : "stage"}>
        <main id="content" tabIndex={-1}>
          {overview.version > 0 && <Content overview={overview} route={route} />}
        </main>
        {asked && <Panel kind={asked} name={route.name} version={overview.version} key={`${asked} ${route.name}`} />}
      </div>
    </>
  );
}
