/**
 * Where an answer comes from: links that open the page at the sentence, and chips that open the passage, rendered as
 * on its page, with the decisive sentence marked.
 */

import { directionOf } from "./direction";
import { element } from "./dom";
import { inline, words } from "./inline";
import { renderMarkdown, safeUrl } from "./markdown";
import { Passage } from "./quotes";
import type { Say } from "./words";
import type { Citation, CitedSource, Source } from "./wire";

const EDGE_WORDS = 5; // words at each end of a long quote: enough for a browser to find it
const DESCRIPTION = /^Description: (.+)$/m; // the other short fields are for the search
const LONG_QUOTE = 90; // characters from which a text fragment is given by its two ends

/** A source of a streamed answer; stored answers have no passage. `heading`: short fields of its page, one a line. */
export type ShownSource = (Source | CitedSource) & { text?: string; heading?: string };

/** A source with the number that the reader sees, which differs from that in the events. */
export interface NumberedSource {
  number: number;
  source: ShownSource;
  quotes: readonly string[];
}

/** The sources that an answer cites, numbered from 1 in the order in which it cites them. */
export function numbered(
  sources: readonly ShownSource[],
  citations: readonly Citation[],
  cited: readonly ShownSource[] = [],
): NumberedSource[] {
  const inOrder = [...citations].sort((a, b) => a.end - b.end);
  const order = new Set([...inOrder.map(({ n }) => n), ...cited.map(({ n }) => n)]);
  const known = [...order].flatMap((n) => sources.find((source) => source.n === n) ?? []);
  return known.map((source, at) => {
    const quotes = inOrder.flatMap(({ n, quote }) => (n === source.n && quote ? [quote] : []));
    return { number: at + 1, source, quotes: [...new Set(quotes)] };
  });
}

export function sourceLink(source: ShownSource, quote: string | null, text: string): HTMLElement {
  const url = source.url ? safeUrl(source.url) : null;
  if (url === null) return element("span", {}, text);
  const cited = quote ? onPage(source, quote) : [];
  const href = cited[0] ? withTextFragment(url, cited) : url;
  return element("a", { href, target: "_blank", rel: "noopener", dir: "auto" }, text);
}

/** The date of a source, from its own data or its CMS; empty without one. */
function asOf(say: Say, source: ShownSource): HTMLElement[] {
  const at = new Date(source.changed_at ?? source.published_at ?? "");
  if (Number.isNaN(at.getTime())) return [];
  const date = new Intl.DateTimeFormat(say.lang, { dateStyle: "long", timeZone: "UTC" }).format(at);
  return [element("p", { className: "date", textContent: say("asOf", { date }) })];
}

/** Pages that the answer does not cite. */
export function relatedPages(say: Say, title: HTMLElement, pages: readonly ShownSource[]): HTMLElement {
  const items = pages.map((page) => element("li", {}, titleLink(page, null), ...asOf(say, page)));
  return element("section", { className: "sources related" }, title, element("ul", {}, ...items));
}

/** One chip for each source; below them the passage of the one that is pressed, made when it is wanted. */
export function citedSources(say: Say, title: HTMLElement, sources: readonly NumberedSource[]): HTMLElement {
  const passages = new Map<HTMLButtonElement, HTMLElement>();
  const open = (pressed: HTMLButtonElement, one: NumberedSource) => {
    if (!passages.has(pressed)) {
      passages.set(pressed, passage(say, one));
      section.append(passages.get(pressed)!);
    }
    for (const [chip, passage] of passages) {
      passage.hidden = chip !== pressed || !passage.hidden;
      chip.ariaExpanded = String(!passage.hidden);
      if (!passage.hidden) reveal(passage);
    }
  };
  const items = sources.map((one) => {
    const { source, quotes } = one;
    const label = () => [
      element("span", { className: "number", textContent: String(one.number) }),
      element("span", { className: "title", textContent: name(source), lang: source.lang, dir: "auto" }),
    ];
    if (!source.text && !quotes.length) {
      const link = sourceLink(source, null, "");
      link.replaceChildren(...label());
      link.className = "chip";
      return element("li", {}, link);
    }
    const chip = element("button", { type: "button", className: "chip", title: name(source), ariaExpanded: "false" }, ...label());
    chip.addEventListener("click", () => open(chip, one));
    return element("li", {}, chip);
  });
  const section = element("section", { className: "sources cited" }, title, element("ol", {}, ...items));
  return section;
}

function name(source: ShownSource): string {
  return source.title || source.page_id;
}

function titleLink(source: ShownSource, quote: string | null): HTMLElement {
  const link = sourceLink(source, quote, name(source));
  link.lang = source.lang;
  return link;
}

/** The passage of a source; for a stored answer only the cited sentences. */
function passage(say: Say, { number, source, quotes }: NumberedSource): HTMLElement {
  // It scrolls by itself, also for the keyboard.
  const body = element("blockquote", { className: "prose", tabIndex: 0, lang: source.lang });
  fill(body, source.text || quotes.join("\n\n"), source, quotes);
  body.ariaLabel = say("source", { n: number, title: name(source) });
  const where = element("div", { className: "where" }, titleLink(source, quotes[0] ?? null), ...asOf(say, source));
  const about = source.heading?.match(DESCRIPTION)?.[1];
  if (about) where.append(element("p", { textContent: about, lang: source.lang, dir: "auto" }));
  return element("div", { className: "passage", hidden: true }, where, body);
}

/** What opens the table that rows of an answer are quoted of, with those rows marked. */
export function wholeTable(say: Say, text: string, source: ShownSource, quotes: readonly string[]): HTMLElement {
  const body = element("div", { lang: source.lang });
  const whole = element("details", { className: "whole" }, element("summary", { textContent: say("wholeTable") }), body);
  whole.addEventListener("toggle", () => {
    if (whole.open && !body.hasChildNodes()) fill(body, text, source, quotes);
    const box = body.querySelector(".table");
    if (whole.open && box) toMark(box);
  });
  return whole;
}

function fill(body: HTMLElement, text: string, source: ShownSource, quotes: readonly string[]): void {
  body.append(renderMarkdown(text, [], source.url));
  body.dir = directionOf(body);
  new Passage(body).mark(quotes);
}

/** Into view, with the first marked sentence in the upper third of what can be seen of the passage. */
function reveal(passage: HTMLElement): void {
  const body = passage.querySelector("blockquote");
  if (body) toMark(body);
  passage.scrollIntoView({ block: "nearest" });
}

/** Scrolls a box to what is marked in it. */
function toMark(box: Element): void {
  const mark = box.querySelector("mark");
  if (!mark) return;
  const above = mark.getBoundingClientRect().top - box.getBoundingClientRect().top;
  box.scrollTop += above - box.clientHeight / 3;
}

// Rendered once, however often an answer that grows is drawn.
const passages = new WeakMap<ShownSource, Passage>();

/** The quote as the page shows it, block by block. */
function onPage(source: ShownSource, quote: string): string[] {
  const passage = passages.get(source) ?? new Passage(renderMarkdown(source.text ?? "", [], source.url));
  passages.set(source, passage);
  const found = passage.pieces(quote);
  return found.length ? found : [words(inline(quote)).replace(/\s+/g, " ").trim()];
}

/**
 * The URL that opens at the quote (https://wicg.github.io/scroll-to-text-fragment/). Of several pieces the first, where it
 * is only a word or two that the page has elsewhere too, says which second one is meant.
 */
function withTextFragment(url: string, cited: readonly string[]): string {
  const [first = [], ...more] = cited.map((piece) => piece.split(" "));
  const context = more.length && first.length < EDGE_WORDS ? first : [];
  const [start = [], ...rest] = context.length ? more : [first, ...more];
  const end = rest.at(-1) ?? start;
  const one = !rest.length && (start.length <= 2 * EDGE_WORDS || start.join(" ").length <= LONG_QUOTE);
  const ends = one ? [start] : [start.slice(0, EDGE_WORDS), end.slice(-EDGE_WORDS)];
  const encode = (words: readonly string[]): string => encodeURIComponent(words.join(" ").toWellFormed()).replaceAll("-", "%2D");
  const before = context.length ? `${encode(context)}-,` : "";
  return `${url}${url.includes("#") ? "" : "#"}:~:text=${before}${ends.map(encode).join(",")}`;
}
