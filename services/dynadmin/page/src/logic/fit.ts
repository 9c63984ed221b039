// What an answer about GPUs says in a word or two.
import type { Any } from "../api/client.ts";

/** Whether there is room, as far as it is known: GPUs of `uncounted` claims may need more. */
export function verdictOf(gpus: Any): string {
  if (!gpus.fits) return "does not fit";
  return gpus.uncounted.length ? "fits without what is not counted" : "fits";
}
