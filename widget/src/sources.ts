/** Where an answer comes from: links that open the page at the sentence, and the passage with the sentence marked. */

import { element } from "./dom";
import { safeUrl } from "./markdown";
import type { Say } from "./words";
import type { Citation, CitedSource, Source } from "./wire";

const EDGE_WORDS = 5; // words at each end of a long quote: enough for a browser to find it
const LONG_QUOTE = 90; // characters from which a text fragment is given by its two ends

/** As an answer comes; of a kept one, its passage is not known. */
export type ShownSource = (Source | CitedSource) & { text?: string };

export function sourceLink(source: ShownSource, quote: string | null, text: string): HTMLElement {
  const url = source.url ? safeUrl(source.url) : null;
  if (url === null) return element("span", {}, text);
  const href = quote ? withTextFragment(url, pieces(quote, source.text)) : url;
  return element("a", { href, target: "_blank", rel: "noopener", dir: "auto" }, text);
}

/** A box of sources. `numbered`: as the answer cites them. */
export function sourceList(
  say: Say,
  title: HTMLElement,
  sources: readonly ShownSource[],
  citations: readonly Citation[],
  numbered: boolean,
): HTMLElement {
  const items = sources.map((source) => {
    const quote = citations.find((citation) => citation.n === source.n && citation.quote)?.quote ?? null;
    const link = sourceLink(source, quote, source.title || source.page_id);
    link.lang = source.lang;
    const item = element("li", {}, link);
    if (numbered) item.value = source.n;
    if (quote) item.append(element("q", { textContent: plain(quote), lang: source.lang, dir: "auto" }));
    // A passage that is nothing but the quote has been shown.
    const more = source.text && plain(source.text) !== plain(quote ?? "");
    if (numbered && source.text && more) item.append(passage(say, source.text, quote, source));
    return item;
  });
  return element("section", { className: `sources ${numbered ? "cited" : "related"}` }, title, element("ol", {}, ...items));
}

/** The passage that was read, with the cited sentence marked. */
function passage(say: Say, text: string, quote: string | null, { n, title, lang }: ShownSource): HTMLElement {
  const found = quote ? find(text, quote) : null;
  const parts: (Node | string)[] = found
    ? [plain(text.slice(0, found.start)), " ", element("mark", {}, plain(text.slice(found.start, found.end))), " ", plain(text.slice(found.end))]
    : [plain(text)];
  // It scrolls by itself, also for the keyboard.
  const body = element("blockquote", { tabIndex: 0, lang, dir: "auto" }, ...parts);
  body.ariaLabel = say("source", { n, title });
  const details = element("details", {}, element("summary", { textContent: say("passage") }), body);
  details.addEventListener("toggle", () => {
    const mark = body.querySelector("mark");
    if (mark && details.open) body.scrollTop = mark.offsetTop - body.offsetTop - body.clientHeight / 3;
  });
  return details;
}

/** Where the quote stands, whatever white space and Markdown of lists and tables is between its words. */
function find(text: string, quote: string): { start: number; end: number } | null {
  const words = quote.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const match = new RegExp(words.join("[\\s|*_#>:-]+")).exec(text);
  return match && { start: match.index, end: match.index + match[0].length };
}

/** The quote, cut where the passage has list items and table cells: no browser looks for a text across those. */
function pieces(quote: string, text = ""): string[] {
  const found = find(text, quote);
  const cited = found ? text.slice(found.start, found.end).split(/\n(?=\s*(?:[-*+|#>]|\d+[.)]|\n))|\|/) : [quote];
  return cited.map(plain).filter((piece) => piece !== "");
}

/**
 * The URL that opens at the quote (https://wicg.github.io/scroll-to-text-fragment/). Of several pieces the first, often
 * a word that the page has elsewhere too, only says which second one is meant.
 */
function withTextFragment(url: string, cited: readonly string[]): string {
  const [first = "", ...more] = cited;
  const [start, end] = [more[0] ?? first, more[more.length - 1] ?? first].map((piece) => piece.split(" ")) as [string[], string[]];
  const one = more.length < 2 && (start.length <= 2 * EDGE_WORDS || start.join(" ").length <= LONG_QUOTE);
  const ends = one ? [start] : [start.slice(0, EDGE_WORDS), end.slice(-EDGE_WORDS)];
  const encode = (words: readonly string[]): string => encodeURIComponent(words.join(" ")).replaceAll("-", "%2D");
  const before = more.length ? `${encode(first.split(" ").slice(-EDGE_WORDS))}-,` : "";
  return `${url}${url.includes("#") ? "" : "#"}:~:text=${before}${ends.map(encode).join(",")}`;
}

/** Text as the page shows it: without Markdown. */
function plain(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^[#>\s|-]+|[*_`|]+/gm, " ")
    .replace(/\s+/g, " ")
    .trim();
}
