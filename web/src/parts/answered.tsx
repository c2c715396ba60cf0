import type { ComponentChildren } from "preact";
import { useAnswer } from "../api";
import { Waiting } from "./waiting";

interface Props<T> {
  path: string;
  version: number;
  children: (value: T) => ComponentChildren;
}

/** What a path answers; where it does not any more, its last answer, and that it is that. */
export function Answered<T>({ path, version, children }: Props<T>) {
  const { value, error } = useAnswer<T>(path, version);
  if (!value) return <Waiting error={error} />;
  return (
    <>
      {error && <p class="error" role="alert">This is the last answer. Since then: {error}</p>}
      {children(value)}
    </>
  );
}
