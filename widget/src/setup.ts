/**
 * Faults in the tag's attributes. The browser's console shows developers the fault, the value and a working example;
 * visitors read one sentence in their language.
 */

import type { ChatRequest } from "./wire";

export type Labels = NonNullable<ChatRequest["labels"]>;

const NAMES = "site lang heading intro examples disclaimer privacy theme accent position launcher token-url webmcp labels mode gateway".split(" ");
const DATA = "data-"; // before each name in a script tag
const EXAMPLE = "https://chat.example.org";
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|.*\.localhost)$/; // which pages with https may ask without it
const NO_SCHEME = /^[\w-]+(?:\.[\w-]+)+(?:[/:]|$)/;

export function complain(what: string, who = "pagewire-chat"): void {
  console.error(`${who}: ${what}`);
}

/** Whether a script tag has any attribute of the chat, even a misspelled one. */
export function wanted(tag: HTMLScriptElement): boolean {
  return [...tag.attributes].some(({ name }) => meant(tag, name) !== null);
}

/** Reports unknown attributes that are spelled almost like a known one. */
export function checkNames(tag: HTMLElement): void {
  for (const { name, value } of tag.attributes) {
    const right = meant(tag, name);
    if (right !== null && right !== name) complain(`the attribute ${name}="${value}" is not read; write ${right}="${value}"`);
  }
}

/** Of the attribute `labels`, such as "kind:form, kind:notice"; null: it is no list of KEY:VALUE. A value may have commas. */
export function labelsIn(written: string): Labels | null {
  const labels: Labels = Object.create(null); // `constructor` is a key like any other
  if (!written.trim()) return labels;
  for (const label of written.split(/,(?=\s*[^\s:,]+:)/)) {
    const [, key, value] = /^\s*([^\s:,]+):\s*(\S.*)$/s.exec(label) ?? [];
    if (!key || !value) return null;
    (labels[key] ??= []).push(value.trim());
  }
  return labels;
}

/** A fault that keeps the chat from working with any gateway; null: none. `home`: the gateway's address, as written. */
export function barrier(tag: HTMLElement, site: string | null, home: string, labels = ""): string | null {
  if (location.protocol === "file:") {
    return (
      `the page was opened as a file (${location.href}), and the gateway answers pages of websites alone; run "python3 -m http.server 8080 ` +
      `--bind 127.0.0.1" beside it, open http://127.0.0.1:8080 and add that to \`origins\` of the site in pagewire.yaml`
    );
  }
  if (!site) return `the attribute ${written(tag, "site")} is missing or empty; write the site's id in pagewire.yaml, such as ${written(tag, "site")}="town"`;
  if (!labelsIn(labels)) return `${written(tag, "labels")}="${labels}" is no list of labels; write ${written(tag, "labels")}="kind:form, department:tax"`;
  const url = URL.canParse(home, document.baseURI) ? new URL(home, document.baseURI) : null;
  const gateway = `${written(tag, "gateway")}="${home}"`;
  if (!url || !/^https?:$/.test(url.protocol) || NO_SCHEME.test(home)) {
    return `${gateway} is no address of a gateway; write it with its scheme, such as ${written(tag, "gateway")}="${EXAMPLE}"`;
  }
  if (location.protocol === "https:" && url.protocol === "http:" && !LOOPBACK.test(url.hostname)) {
    return `a page with https cannot ask a gateway without (${gateway}); put TLS before the gateway and write https://${url.host}`;
  }
  return null;
}

/** The change that the setup needs after a refusal or without a gateway; null: the setup is not the reason. */
export function remedy(tag: HTMLElement, code: string, site: string, base: string): string | null {
  const gateway = `${base} (from ${written(tag, "gateway")}, or the script's own address)`;
  switch (code) {
    case "unknown-site":
      return `the gateway at ${base} knows no ${written(tag, "site")}="${site}"; write an id that stands below \`sites\` in its pagewire.yaml, such as ${written(tag, "site")}="town"`;
    case "origin-not-allowed":
      return self.origin === "null"
        ? `the page has no origin (a sandbox), so the gateway at ${base} refuses it; give its frame allow-same-origin`
        : `the gateway at ${base} refuses pages of ${self.origin}; in pagewire.yaml, add it to the site ${site}, such as origins: [${self.origin}], and restart the gateway`;
    case "no-gateway":
      return `what answers at ${gateway} is no Pagewire gateway, or a proxy before it changes the answers; write an address such as ${EXAMPLE}`;
    case "unreachable":
      return `nothing answers at ${gateway}; write an address such as ${EXAMPLE} at which a gateway runs, and which connect-src of the page's Content-Security-Policy allows`;
    default:
      return null;
  }
}

/** As the tag's attributes are written. */
function written(tag: HTMLElement, name: string): string {
  return tag instanceof HTMLScriptElement ? DATA + name : name;
}

/** The known attribute that one of the tag's stands for: itself, or one that is hardly different; null: none. */
function meant(tag: HTMLElement, name: string): string | null {
  const bare = name.startsWith(DATA) ? name.slice(DATA.length) : name;
  if (name in tag) return null; // any element has it
  const close = (known: string) => bare.startsWith(`${known}-`) || edits(bare, known) <= (known.length > 4 ? 2 : 1);
  const known = NAMES.includes(bare) ? bare : NAMES.find(close);
  return known ? written(tag, known) : null;
}

/** Levenshtein's distance. */
function edits(one: string, other: string): number {
  let row = [...other, ""].map((_, j) => j);
  for (let i = 1; i <= one.length; i += 1) {
    const above = row;
    row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + Number(one[i - 1] !== other[j - 1])));
    }
  }
  return row[other.length]!;
}
