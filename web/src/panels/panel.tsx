import { useEffect, useRef } from "preact/hooks";
import { close, type Kind } from "../route";
import { GroupPanel } from "./group";
import { NodePanel } from "./node";
import { PodPanel } from "./pod";

const PANELS = { pod: PodPanel, group: GroupPanel, node: NodePanel };

/** Details beside the view. The focus comes here, and goes back where it was. */
export function Panel({ kind, name, version }: { kind: Kind; name: string; version: number }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    heading.current?.focus({ preventScroll: true });
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  const Content = PANELS[kind];
  return (
    <aside class="panel" aria-labelledby="panel-name">
      <header>
        <p class="kind">{kind}</p>
        <h2 id="panel-name" ref={heading} tabIndex={-1}>{name}</h2>
        <button type="button" class="quiet" onClick={close} title="Close (Esc)">
          <span aria-hidden="true">✕</span>
          <span class="hidden">Close</span>
        </button>
      </header>
      <Content name={name} version={version} />
    </aside>
  );
}
