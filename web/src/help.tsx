import { useEffect, useRef, useState } from "preact/hooks";
import { REACH_WORDS } from "./parts/reach";
import { REACHES } from "./types";

const KEYS: [string, string][] = [
  ["/", "find a pod, a group or a node"],
  ["arrow keys", "from pod to pod on the map"],
  ["Enter", "open the pod in focus"],
  ["Esc", "close what is open"],
  ["?", "this help"],
];

/** What the marks mean, and the keys. The key ? opens it. */
export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [open, setOpen] = useState(false);
  const show = () => {
    setOpen(true);
    dialog.current?.showModal();
  };
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "?" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      show();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <button type="button" class="quiet" title="What the marks mean, and the keys (?)" onClick={show}>
        <span aria-hidden="true">?</span>
        <span class="hidden">Help</span>
      </button>
      <dialog
        ref={dialog}
        class="help"
        aria-labelledby="help-name"
        onClose={() => setOpen(false)}
        onKeyDown={(event) => event.stopPropagation()}
        onClick={(event) => { if (event.target === dialog.current) dialog.current?.close(); }}
      >
        {open && <div class="help-content">
          <div class="help-head">
            <h2 id="help-name">What is shown</h2>
            <button type="button" class="quiet" onClick={() => dialog.current?.close()}><span aria-hidden="true">✕</span><span class="hidden">Close help</span></button>
          </div>
          <p>Each room is a node, and the parts in it are its NUMA nodes. Pods that opted in stand on the NUMA node whose CPUs they may use.</p>
          <Marks />
          <h3>Keys</h3>
          <dl class="facts">
            {KEYS.map(([key, words]) => [<dt key={key}><kbd>{key}</kbd></dt>, <dd key={words}>{words}</dd>])}
          </dl>
          <p class="note">The address in the browser says what is shown: send it to share the view.</p>
        </div>}
      </dialog>
    </>
  );
}

function Marks() {
  return (
    <dl class="facts marks">
      <dt><span class="meter-bar"><span class="meter-requested" style={{ width: "60%" }} /></span></dt>
      <dd>CPU or memory that pods requested</dd>
      <dt><span class="meter-bar"><span class="meter-exclusive" style={{ width: "60%" }} /></span></dt>
      <dd>CPUs that single containers have for themselves</dd>
      <dt><span class="meter-bar"><span class="meter-held" style={{ width: "60%" }} /></span></dt>
      <dd>held: for pods that are expected, and for groups still to come</dd>
      <dt><span class="meter-bar"><span class="meter-mark" style={{ left: "60%" }} /></span></dt>
      <dd>what is in use at the moment, by all processes of the node</dd>
      <dt><span class="pod" style={{ "--group": "var(--now)" }}><span class="code">Sh</span></span></dt>
      <dd>a pod: its group's colour and two letters of it</dd>
      <dt><span class="pod exclusive" style={{ "--group": "var(--now)" }}><span class="code">Sh</span></span></dt>
      <dd>a pod with exclusive CPUs</dd>
      <dt><span class="pod expected" style={{ "--group": "var(--now)" }}><span class="code">Sh</span></span></dt>
      <dd>a pod that is expected: its node has not reported it yet</dd>
      {REACHES.map((reach) => [
        <dt key={reach}><svg width="60" height="10" aria-hidden="true"><line class={`line line-${reach}`} x1="1" y1="5" x2="59" y2="5" stroke-width="3" /></svg></dt>,
        <dd key={`${reach} words`}>traffic {REACH_WORDS[reach]}; the thicker, the more bytes a second</dd>,
      ])}
    </dl>
  );
}
