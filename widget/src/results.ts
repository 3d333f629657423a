/** Results of a search: pages with the passages that fit best, the searched words marked, each link at its sentence. */

import { element } from "./dom";
import { safeUrl } from "./markdown";
import { directionOfLanguage, type SaySearch, type SearchWord } from "./search-words";
import type { SearchHit } from "./wire";

const PASSAGES = 2; // of a page

export interface FoundPage {
  title: string;
  url: string;
  lang: string;
  section: string; // of the website, by its address; empty: none
  kind: string; // of schema.org; empty: the page does not say
  asOf: string | null;
  passages: readonly SearchHit[];
}

/** The pages in the order of their best hits. */
export function byPage(hits: readonly SearchHit[]): FoundPage[] {
  const pages = new Map<string, SearchHit[]>();
  for (const hit of hits) {
    const key = `${hit.url}\n${hit.title}`;
    const before = pages.get(key);
    if (before) before.push(hit);
    else pages.set(key, [hit]);
  }
  const found = [...pages.values()];
  const sections = sectionsOf(found.map(([hit]) => hit!.url));
  return found.map((own, at) => {
    const { title, page_id, url, lang, page_kind: kind, changed_at, published_at } = own[0]!;
    const content = own.filter(({ field }) => field === "content");
    const passages = (content.length ? content : own.filter(({ field }) => field === "description")).slice(0, PASSAGES);
    return { title: title || page_id, url, lang, section: sections[at]!, kind, asOf: changed_at ?? published_at ?? null, passages };
  });
}

/** The first folder by which the addresses differ, of each; empty where it has none there. */
export function sectionsOf(urls: readonly string[]): string[] {
  const folders = urls.map((url) => {
    const safe = safeUrl(url);
    return safe ? new URL(safe).pathname.split("/").slice(1, -1) : [];
  });
  const [first = []] = folders;
  let depth = 0;
  while (depth < first.length && folders.every((each) => each[depth] === first[depth])) depth += 1;
  return folders.map((each) => each[depth] ?? "");
}

/** A folder of an address, as people read it. */
export function sectionName(folder: string): string {
  let name = folder;
  try {
    name = decodeURIComponent(folder);
  } catch {
    // as it is written
  }
  return name.replaceAll(/[-_]/g, " ");
}

/** The labels that pages have, by key, each value once. */
export function labelsOf(hits: readonly (SearchHit & { labels?: Record<string, string[]> })[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { labels = {} } of hits) {
    for (const [key, values] of Object.entries(labels)) {
      const known = found.get(key) ?? new Set();
      for (const value of values) known.add(value);
      found.set(key, known);
    }
  }
  return found;
}

/** Where a link leads to; null: nowhere that is safe to open. `fragment`: jumps to a sentence. */
export function opened(url: string, fragment = ""): string | null {
  const safe = url ? safeUrl(url) : null;
  return safe && fragment ? `${safe}${safe.includes("#") ? "" : "#"}${fragment}` : safe;
}

/** What a page is and of when, in words; empty: it says neither. */
function aboutPage(say: SaySearch, { kind, asOf }: FoundPage): string {
  const at = new Date(asOf ?? "");
  const date = Number.isNaN(at.getTime()) ? "" : say("asOf", { date: new Intl.DateTimeFormat(say.lang, { dateStyle: "long", timeZone: "UTC" }).format(at) });
  // Without a word for its kind, as for pages of many things, there is none.
  return [say(`kind-${kind}` as SearchWord), date].filter(Boolean).join(" · ");
}

export function pageItem(say: SaySearch, page: FoundPage): HTMLLIElement {
  const { title, url, lang, passages } = page;
  const item = element("li", { lang, dir: directionOfLanguage(lang) }, element("p", { className: "title", dir: "auto" }, link(url, passages[0]?.snippet.fragment, title)));
  const about = aboutPage(say, page);
  if (about) item.append(element("p", { className: "about" }, element("span", { lang: say.lang, dir: say.dir, textContent: about })));
  for (const { snippet } of passages) {
    const text = element("p", { className: "passage" });
    if (snippet.heading) text.append(link(url, snippet.fragment, snippet.heading), " · ");
    for (const { text: piece, match } of snippet.parts) text.append(match ? element("mark", { textContent: piece }) : piece);
    item.append(text);
  }
  return item;
}

function link(url: string, fragment: string | undefined, text: string): HTMLElement {
  const href = opened(url, fragment);
  return href ? element("a", { href, textContent: text }) : element("span", { textContent: text });
}
