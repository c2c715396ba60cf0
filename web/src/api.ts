import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "./access";

/** What was asked about is not there, or not any more. */
class NotThere extends Error {}

/** What takes so long never comes: its other end has gone without a word. */
export const HANGS_AFTER_MS = 75_000;

/** Relative to the page, which may be behind a proxy's path. */
export async function get<T>(path: string, signal: AbortSignal): Promise<T> {
  const hung = new AbortController();
  const timer = window.setTimeout(() => hung.abort(new Error("The extender does not answer.")), HANGS_AFTER_MS);
  try {
    const response = await request(`api/v1/${path}`, { headers: { Accept: "application/json" }, signal: AbortSignal.any([signal, hung.signal]) });
    const body = (await response.json()) as T & { error?: string };
    if (!response.ok) throw new (response.status === 404 ? NotThere : Error)(body.error ?? `the extender answered ${response.status}`);
    return body;
  } finally {
    clearTimeout(timer);
  }
}

export interface Answer<T> {
  value: T | null;
  error: string;
}

/** After an answer nothing is asked for so many times as long as it took: some are worked out for seconds. */
const REST = 3;
/** After which what failed is asked for again, whether or not there is anything newer. */
const AGAIN_MS = 5_000;

/** What a path answers, asked again when there is a newer version and the last answer is here, which stays until then, unless what it tells of is gone. Nothing is asked without a path. */
export function useAnswer<T>(path: string | null, version: number): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T> & { path: string | null }>({ path, value: null, error: "" });
  const again = useRef(() => {});
  useEffect(() => again.current(), [version]);
  useEffect(() => {
    if (path === null) return;
    const aborted = new AbortController();
    let timer = 0;
    let [busy, newer] = [false, false];
    const ask = async () => {
      [busy, newer] = [true, false];
      const began = performance.now();
      let rest = 0;
      try {
        const value = await get<T>(path, aborted.signal);
        setAnswer({ path, value, error: "" });
        rest = REST * (performance.now() - began);
      } catch (failed) {
        if (aborted.signal.aborted) return;
        const gone = failed instanceof NotThere;
        setAnswer((before) => ({ path, value: before.path === path && !gone ? before.value : null, error: (failed as Error).message }));
        [newer, rest] = [newer || !gone, AGAIN_MS];
      }
      if (!aborted.signal.aborted) timer = window.setTimeout(rested, rest);
    };
    const rested = () => {
      if (newer && document.hidden) {
        timer = window.setTimeout(rested, AGAIN_MS);
        return;
      }
      busy = false;
      if (newer) void ask();
    };
    again.current = () => {
      if (busy) newer = true;
      else void ask();
    };
    void ask();
    return () => {
      aborted.abort();
      clearTimeout(timer);
      again.current = () => {};
    };
  }, [path]);
  return answer.path === path ? answer : { value: null, error: "" };
}
