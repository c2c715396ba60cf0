/** In the place of an answer that has not come. */
export function Waiting({ error }: { error: string }) {
  return error ? <p class="error" role="alert">{error}</p> : <p class="empty">Asking…</p>;
}
