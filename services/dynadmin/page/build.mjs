// Bundles the page, or its tests. `node build.mjs MODULES OUT [tests]`; MODULES is a node_modules folder.
import { createRequire } from "node:module";
import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out, what] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const { build } = createRequire(join(modules, "esbuild", "package.json"))("esbuild");
const common = { bundle: true, format: "esm", target: "es2022", nodePaths: [modules], logLevel: "warning", absWorkingDir: here };

if (what === "tests") {
  await build({ ...common, entryPoints: ["tests/all.ts"], outfile: join(out, "tests.mjs"), external: ["node:*"] });
} else {
  await mkdir(out, { recursive: true });
  const production = { minify: true, legalComments: "none", charset: "utf8", conditions: ["production"] };
  await build({ ...common, ...production, entryPoints: ["src/main.ts"], outfile: join(out, "page.js") });
  await build({ ...common, ...production, entryPoints: ["src/style/page.css"], outfile: join(out, "page.css") });
  await copyFile(join(here, "src", "index.html"), join(out, "index.html"));
  await copyFile(join(here, "src", "icon.svg"), join(out, "icon.svg"));
}
