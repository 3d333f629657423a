/** Prints every regular expression of src/ as JSON, for the test of how long they take: [file, source, flags]. */

import { readdir, readFile } from "node:fs/promises";
import { parse } from "acorn";
import { transform } from "esbuild";

const src = new URL("src/", import.meta.url);
const found = [];

function walk(node, file) {
  if (!node || typeof node !== "object") return;
  if (node.regex) found.push([file, node.regex.pattern, node.regex.flags]);
  // Made while it runs, it would not be tried.
  if (node.type === "Identifier" && node.name === "RegExp") throw new Error(`${file}: write regular expressions as literals`);
  for (const child of Object.values(node)) walk(child, file);
}

for (const file of (await readdir(src, { recursive: true })).filter((name) => name.endsWith(".ts")).sort()) {
  const { code } = await transform(await readFile(new URL(file, src), "utf8"), { loader: "ts", target: "esnext" });
  walk(parse(code, { ecmaVersion: "latest", sourceType: "module" }), file);
}
console.log(JSON.stringify(found));
