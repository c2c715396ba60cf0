import { Finder } from "./finder";
import { Help } from "./help";
import type { Link, Overview } from "./live";
import { ForgetToken } from "./parts/token";
import { address, VIEWS, type Route, type View } from "./route";
import { ThemeSwitch } from "./theme";

const NAMES: Record<View, string> = { map: "Map", pods: "Pods", groups: "Groups", nodes: "Nodes" };

const LINKS: Record<Link, [string, string]> = {
  connecting: ["connecting", "Waiting for the extender's first answer"],
  live: ["live", "Changes come as they happen"],
  lost: ["no answer", "The extender does not answer: what is shown is its last answer"],
};

export function Header({ overview, route }: { overview: Overview; route: Route }) {
  const [word, explanation] = LINKS[overview.link];
  return (
    <header class="header">
      <Brand />
      <nav aria-label="Views">
        {VIEWS.map((view) => (
          <a key={view} href={address({ ...route, view, sort: "" })} aria-current={route.view === view ? "page" : undefined}>
            {NAMES[view]}
          </a>
        ))}
      </nav>
      <Finder overview={overview} />
      <p class={`link link-${overview.link}`} role="status" title={explanation}>
        <span class="dot" aria-hidden="true" />
        {word}
      </p>
      <ForgetToken />
      <Help />
      <ThemeSwitch />
    </header>
  );
}

/** Where nothing of the cluster may be shown. */
export function BareHeader() {
  return (
    <header class="header bare">
      <Brand />
      <ThemeSwitch />
    </header>
  );
}

function Brand() {
  return (
    <h1 class="brand">
      <img src="assets/icon.svg" alt="" width="28" height="28" />
      numakin
    </h1>
  );
}
