// Who reads: by a token of the API server, which this tab alone keeps, until it is closed.
import { useEffect, useState } from "preact/hooks";

const KEY = "numakin-token";
const CHANGED = "numakin-access";

/** Authorization does not pass the API server's service proxy. */
const HEADER = "X-Numakin-Token";

export interface Access {
  hasToken: boolean;
  /** Why nothing may be read, in the server's words; empty where no token was sent; null while it answers. */
  refusal: string | null;
}

let refusal: string | null = null;

const token = () => sessionStorage.getItem(KEY) ?? "";
const current = (): Access => ({ hasToken: token() !== "", refusal });

function change(value: string | null): void {
  refusal = value;
  dispatchEvent(new Event(CHANGED));
}

export function enter(value: string): void {
  sessionStorage.setItem(KEY, value);
  change(null);
}

export function forget(): void {
  sessionStorage.removeItem(KEY);
  change("");
}

/** Fetches with the token, if there is one. Nothing is asked from a refusal on until a token is entered. */
export async function request(address: string | URL, init: RequestInit): Promise<Response> {
  if (refusal !== null) throw new Error(refusal);
  const sent = token();
  const headers = new Headers(init.headers);
  if (sent) headers.set(HEADER, sent);
  const response = await fetch(address, { ...init, headers });
  if (response.status === 401 || response.status === 403) await refused(response.clone(), sent);
  return response;
}

/** The extender says why as `error`; the API server, where its proxy refuses, as `message`. */
async function refused(response: Response, sent: string): Promise<void> {
  const body = (await response.json().catch(() => ({}))) as { error?: string; message?: string };
  if (refusal !== null || sent !== token()) return;
  if (response.status === 401) sessionStorage.removeItem(KEY);
  change(!sent && body.error ? "" : (body.error ?? body.message ?? `the answer was ${response.status}`));
}

export function useAccess(): Access {
  const [access, setAccess] = useState(current);
  useEffect(() => {
    const changed = () => setAccess(current());
    addEventListener(CHANGED, changed);
    return () => removeEventListener(CHANGED, changed);
  }, []);
  return access;
}
