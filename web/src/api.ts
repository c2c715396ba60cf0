import { useEffect, useState } from "preact/hooks";
import { request } from "./access";

/** Relative to the page, which may be behind a proxy's path. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(`api/v1/${path}`, { headers: { Accept: "application/json" }, ...(signal ? { signal } : {}) });
  const body = (await response.json()) as T & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `the extender answered ${response.status}`);
  return body;
}

export interface Answer<T> {
  value: T | null;
  error: string;
}

/** What a path answers, asked again at each new version; the last answer stays until the next is here. Nothing is asked without a path. */
export function useAnswer<T>(path: string | null, version: number): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T> & { path: string | null }>({ path, value: null, error: "" });
  useEffect(() => {
    if (path === null) return;
    const aborted = new AbortController();
    get<T>(path, aborted.signal).then(
      (value) => setAnswer({ path, value, error: "" }),
      (failed: Error) => {
        if (!aborted.signal.aborted) setAnswer((before) => ({ path, value: before.path === path ? before.value : null, error: failed.message }));
      },
    );
    return () => aborted.abort();
  }, [path, version]);
  return answer.path === path ? answer : { value: null, error: "" };
}
