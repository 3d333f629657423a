/** The script's entry: defines <pagewire-search>. */

import { PagewireSearch } from "./search";

const TAG = "pagewire-search";
const FILE = "/search.js";

const own =
  document.currentScript ?? [...document.scripts].find(({ src }) => src && new URL(src).pathname.endsWith(FILE)); // a module does not know its tag
if (own instanceof HTMLScriptElement && own.src) PagewireSearch.home = own.src;
if (!customElements.get(TAG)) customElements.define(TAG, PagewireSearch);
