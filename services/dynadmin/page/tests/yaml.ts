import { parse, stringify } from "../src/logic/yaml.ts";
import { deepEqual, equal, test } from "./check.ts";

test("a manifest means what Kubernetes' own tools read", () => {
  const text = "mode: 0444\nother: 0o444\nflag: yes\nname: 'no'\nat: 22:22\nday: 2024-05-01\nsize: 1_000";
  deepEqual(parse(text), { mode: 292, other: 292, flag: true, name: "no", at: "22:22", day: "2024-05-01", size: 1000 });
});

test("text that another version of YAML reads as something else is quoted, and stays", () => {
  for (const text of ["yes", "off", "y", "0444", "0o17", "1_000", "12e5", "12345e67", "0b1", "22:22", "~", "true"]) {
    equal(parse(stringify({ text })).text, text);
    equal(stringify({ text }), `text: "${text}"\n`);
  }
});
