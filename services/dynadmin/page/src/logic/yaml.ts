// Manifests as Kubernetes tools read them, as YAML 1.1: `yes` is true and 0444 an octal number. Pure.
import { parse as parsed, stringify as written, type ScalarTag, type Tags } from "yaml";
import type { Any } from "../api/client.ts";

/** Octal numbers of YAML 1.2, which these tools read, too. */
const OCTAL: ScalarTag = { tag: "tag:yaml.org,2002:int", default: true, test: /^0o[0-7]+$/, resolve: Number };

/** These tools read times, and numbers in base 60 such as 22:22, as text. */
function tags(all: Tags): Tags {
  return [OCTAL, ...all.filter((each) => typeof each === "string" || !(each.tag.endsWith(":timestamp") || ("format" in each && each.format === "TIME")))];
}

export function parse(text: string): Any {
  return parsed(text, { version: "1.1", customTags: tags });
}

/** Quote texts that YAML 1.1 or 1.2 would not read as text. */
export function stringify(value: Any): string {
  return written(value, { compat: "yaml-1.1", lineWidth: 0 });
}
