// A short summary of an answer about GPUs.
import type { Any } from "../api/client.ts";

/** Whether the known GPUs fit: `uncounted` claims may need more. */
export function verdictOf(gpus: Any): string {
  if (!gpus.fits) return "does not fit";
  return gpus.uncounted.length ? "fits without what is not counted" : "fits";
}
