/** Bundles src/ into the one file that the gateway serves. `node build.mjs [TARGET]` */

import { readFile } from "node:fs/promises";
import { build, transform } from "esbuild";

const minifiedText = {
  name: "css as minified text",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code, loader: "text" };
    });
  },
};

await build({
  entryPoints: [new URL("src/index.ts", import.meta.url).pathname],
  outfile: process.argv[2] ?? new URL("../gateway/site/static/widget.js", import.meta.url).pathname,
  bundle: true,
  format: "iife",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  plugins: [minifiedText],
  banner: { js: "/* Pagewire's chat. Built by `make widget` from widget/src; do not edit. */" },
});
