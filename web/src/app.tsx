import { useEffect } from "preact/hooks";
import { useAccess } from "./access";
import { BareHeader, Header } from "./header";
import { useOverview } from "./live";
import { MapView } from "./map/view";
import { Panel } from "./panels/panel";
import { TokenForm } from "./parts/token";
import { close, useRoute } from "./route";
import { Summary } from "./summary";
import { GroupsTable } from "./tables/groups";
import { NodesTable } from "./tables/nodes";

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
  // Groups get their colours from the overview, so that they are the same on every screen.
  const asked = overview.version ? route.kind : null;
  const Content = { map: MapView, groups: GroupsTable, nodes: NodesTable }[route.view];
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
        To the content
      </a>
      <Header overview={overview} route={route} />
      <Summary overview={overview} />
      <div class={route.kind ? "stage with-panel" : "stage"}>
        <main id="content" tabIndex={-1}>
          <Content overview={overview} route={route} />
        </main>
        {asked && <Panel kind={asked} name={route.name} version={overview.version} key={`${asked} ${route.name}`} />}
      </div>
    </>
  );
}
