/** Bundles src/ into the files that the gateway serves: the chat, and the search field. `node build.mjs [FOLDER]` */

import { readFile } from "node:fs/promises";
import { build, transform } from "esbuild";

const path = (file) => new URL(file, import.meta.url).pathname;

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
  entryPoints: { widget: path("src/index.ts"), search: path("src/search-index.ts") },
  outdir: process.argv[2] ?? path("../gateway/site/static"),
  bundle: true,
  format: "iife",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  plugins: [minifiedText],
  banner: { js: "/* Pagewire. Built by `make widget` from widget/src; do not edit. */" },
});
