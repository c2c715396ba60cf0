import { useEffect, useRef } from "preact/hooks";
import { enter, forget, useAccess } from "../access";
import { NAMESPACE } from "../namespace";

const COMMAND = `kubectl -n ${NAMESPACE} create token numakin-viewer --audience=numakin`;

/** In place of the cluster, where the extender shows it only to whom it may. */
export function TokenForm({ refusal }: { refusal: string }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submitted = (event: SubmitEvent) => {
    event.preventDefault();
    if (field.current) enter(field.current.value.trim());
  };
  return (
    <main class="access">
      <h2>Paste a token</h2>
      <p>The extender answers those whom the API server lets list AffinityGroups in all namespaces. This command prints a token of an account that may:</p>
      <p><code>{COMMAND}</code></p>
      {refusal && <p class="error" role="alert" id="token-refusal">Refused: {refusal}</p>}
      <form onSubmit={submitted}>
        <label for="token">Token</label>
        <input
          ref={field}
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          pattern="\s*[!-~]+\s*"
          title="One word of printable ASCII characters"
          aria-describedby={refusal ? "token-refusal token-kept" : "token-kept"}
        />
        <button type="submit">Show the cluster</button>
      </form>
      <p class="note" id="token-kept">This tab keeps it until it is closed, and sends it to the extender only. When it has run out (after an hour, unless --duration says otherwise), another is asked for.</p>
    </main>
  );
}

export function ForgetToken() {
  const { hasToken } = useAccess();
  if (!hasToken) return null;
  return <button type="button" class="quiet" onClick={forget} title="Forget the token that was pasted into this tab">Forget token</button>;
}
