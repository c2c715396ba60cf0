/** Where numakin runs, in the server's words. */
export const NAMESPACE = document.querySelector<HTMLMetaElement>('meta[name="numakin-namespace"]')?.content ?? "numakin";
