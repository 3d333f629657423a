/**
 * For test_hostile.py: what each function of the widget makes of a stranger's text, at the longest that it can get. Needs
 * the global `widget`, all modules of widget/src by their names.
 */

const ANSWER = 16_000; // characters; some four times what the tokens of an answer make
const PASSAGE = 8_000;
const QUESTION = 4_000;
const TITLE = 20_000;
const ADDRESS = 4_000;
const CITATIONS = 40; // of one answer

const say = widget.words.wordsFor("en");
const sayFound = widget["search-words"].searchWordsFor("en");
const client = { conversations: async () => ({ today: client.listed, yesterday: [], last_week: [], older: [] }) };
const explain = (error) => widget.trouble.troubleOf(error, say);
const context = { say, client, lang: "en", subheading: "h3", explain, announce() {}, toQuestion() {}, emit() {} };
const source = (text, title = "Title", url = "https://t.example/") => ({ n: 1, page_id: "p", lang: "en", title, url, field: "content", ord: 0, text });
// Parts of the text, with an end that does not fit, and the whole of it.
const quotes = (text) => [`${text.slice(0, 2_000)}y`, text.slice(1_000, 3_000), text];
const numbered = (text) => [{ number: 1, source: source(text, text), quotes: quotes(text) }];
const answer = (text) => ({
  type: "answer", text, extractive: false, left_out: 0, narrower: [], trace: [{ asked: text }], sources: [{ ...source(text.slice(0, PASSAGE)), cited: true }],
  citations: Array.from({ length: CITATIONS }, (_, i) => ({ n: 1, start: 0, end: (i * text.length) / CITATIONS, quote: text.slice(i * 100, i * 100 + 300) })),
  tables: [{ n: 1, start: 0, text: text.slice(0, PASSAGE) }],
});
const box = (node) => {
  const div = document.createElement("div");
  div.append(node);
  return div;
};
const hitsOf = (text) =>
  Array.from({ length: 30 }, (_, n) => ({
    page_id: "p", lang: "en", title: text, url: `https://t.example/${text.slice(0, ADDRESS)}/${n}`, field: "content", ord: n, labels: { [text]: [text] }, page_kind: text, changed_at: text,
    snippet: { parts: [{ text: text.slice(0, 280), match: true }], fragment: text.slice(0, 1_000), heading: text },
  }));
// What is made before the clock runs.
const shown = (text) => box(widget.markdown.renderMarkdown(text));
const given = (text) => text;

/** Of a module and its function: the longest text, what is made of it, and what is timed. */
globalThis.ring = {
  "copying.writtenOut": [ANSWER, shown, (node) => widget.copying.writtenOut(node)],
  "copying.spoken": [ANSWER, shown, (node) => widget.copying.spoken(node)],
  "direction.direct": [ANSWER, shown, (node) => widget.direction.direct(node)],
  "direction.directionOf": [ANSWER, shown, (node) => widget.direction.directionOf(node)],
  "inline.inline": [ANSWER, given, (text) => widget.inline.inline(text, 0, true)],
  "inline.words": [ANSWER, (text) => widget.inline.inline(text), (pieces) => widget.inline.words(pieces)],
  "markdown.safeUrl": [ADDRESS, given, (text) => [widget.markdown.safeUrl(text), widget.markdown.safeUrl(`https://${text}`)]],
  "markdown.renderMarkdown": [ANSWER, given, (text) => widget.markdown.renderMarkdown(text)],
  "markdown.renderMarkdown, a page": [PASSAGE, given, (text) => widget.markdown.renderMarkdown(text, [], "https://t.example/")],
  "quotes.Passage, marking": [PASSAGE, shown, (node, text) => new widget.quotes.Passage(node).mark(quotes(text))],
  "quotes.Passage, pieces": [PASSAGE, shown, (node, text) => quotes(text).map((quote) => new widget.quotes.Passage(node).pieces(quote))],
  "sources.citedSources": [
    PASSAGE,
    (text) => widget.sources.citedSources(say, box(""), numbered(text)).querySelector("button"),
    (chip) => chip.click(),
  ],
  "sources.numbered": [ANSWER, answer, ({ sources, citations }) => widget.sources.numbered(sources, citations)],
  "sources.relatedPages": [TITLE, given, (text) => widget.sources.relatedPages(say, box(""), [{ ...source("", text, text.slice(0, ADDRESS)), changed_at: text }])],
  "sources.sourceLink": [PASSAGE, source, (one, text) => quotes(text).map((quote) => widget.sources.sourceLink(one, quote, "1"))],
  "sources.sourceLink, of a kept answer": [PASSAGE, () => source(""), (one, text) => widget.sources.sourceLink(one, text, "1")],
  "sources.wholeTable": [
    PASSAGE,
    (text) => Object.assign(widget.sources.wholeTable(say, text, source(text), quotes(text)), { open: true }),
    (table) => table.dispatchEvent(new Event("toggle")),
  ],
  "combobox.Combobox": [
    TITLE,
    () => new widget.combobox.Combobox(document.createElement("input"), "", () => {}, () => {}),
    (box, text) => box.show([{ label: "", options: Array.from({ length: 10 }, () => ({ text, note: text, lang: "en", pick() {} })) }]),
  ],
  "results.byPage": [ADDRESS, hitsOf, (hits) => widget.results.byPage(hits)],
  "results.labelsOf": [ADDRESS, hitsOf, (hits) => widget.results.labelsOf(hits)],
  "results.opened": [ADDRESS, given, (text) => [widget.results.opened(text, text), widget.results.opened(`https://${text}`, text)]],
  "results.pageItem": [TITLE, (text) => widget.results.byPage(hitsOf(text)), (pages) => pages.map((page) => widget.results.pageItem(sayFound, page))],
  "results.sectionName": [ADDRESS, given, (text) => widget.results.sectionName(text)],
  "results.sectionsOf": [ADDRESS, given, (text) => widget.results.sectionsOf(Array.from({ length: 30 }, (_, n) => `https://t.example/${text}/${n}`))],
  "sse.readEvents": [
    ANSWER,
    (text) => new Response(`: ${text}\n\nid: 1\nevent: token\ndata: ${JSON.stringify({ text })}\n\n`),
    async (response) => {
      for await (const { event } of widget.sse.readEvents(response)) if (!event.text) throw new Error("no event");
    },
  ],
  "steps.stepsFold": [QUESTION, given, (text) => widget.steps.stepsFold(say, text, 3, answer(text))],
  "trouble.troubleOf": [QUESTION, given, (text) => explain(new widget.client.AskError("chat-off", 403, "", 0, text))],
  "turn.Turn, a token": [
    ANSWER,
    (text) => {
      const turn = new widget.turn.Turn(text.slice(0, QUESTION), context);
      turn.show({ type: "rephrased", question: text.slice(0, QUESTION) });
      turn.show({ type: "sources", sources: answer(text).sources });
      turn.show({ type: "token", text: text.slice(0, -4) });
      for (const citation of answer(text).citations) turn.show(citation);
      turn.stop();
      return turn;
    },
    (turn, text) => {
      turn.show({ type: "token", text: text.slice(-4) });
      turn.stop();
    },
  ],
  "turn.Turn, the answer": [ANSWER, (text) => [new widget.turn.Turn("?", context), answer(text)], ([turn, event]) => turn.show(event)],
  "turn.Turn, spoken": [ANSWER, (text) => whole(text), (turn) => turn.spoken],
  "turn.Turn, copied": [ANSWER, (text) => whole(text), (turn) => turn.copied],
  "conversations-panel.ConversationsPanel": [
    QUESTION,
    (text) => {
      client.listed = Array.from({ length: 100 }, (_, i) => ({ conversation_id: `${i}`, title: text.slice(i * 200, i * 200 + 200), turns: 1 }));
      return new widget["conversations-panel"].ConversationsPanel(context);
    },
    (panel) => panel.fill(),
  ],
  "words.languageOf": [QUESTION, given, (text) => widget.words.languageOf(text)],
  "words.wordsFor": [QUESTION, given, (text) => say("searchingFor", { question: text })],
};

function whole(text) {
  const turn = new widget.turn.Turn("?", context);
  turn.show(answer(text));
  return turn;
}

const filled = (unit, longest) => unit.repeat(Math.ceil(longest / unit.length)).slice(0, longest);

/** Milliseconds that a function of the ring takes for a text of this unit. */
globalThis.timed = async (name, unit) => {
  const [longest, make, run] = ring[name];
  const text = filled(unit, longest);
  const made = make(text);
  const begun = performance.now();
  await run(made, text);
  return performance.now() - begun;
};

/** The longest that a regular expression takes for texts of these units, and of which one. */
globalThis.slowest = (pattern, flags, units) => {
  let worst = [0, ""];
  for (const unit of units) {
    const text = `${filled(unit, ANSWER)}\0`;
    const begun = performance.now();
    for (const start of flags.includes("y") ? [0, ANSWER / 2] : [0]) {
      const expression = new RegExp(pattern, flags);
      expression.lastIndex = start;
      while (expression.exec(text) && expression.global) if (expression.lastIndex === start) expression.lastIndex += 1;
    }
    const ms = performance.now() - begun;
    if (ms > worst[0]) worst = [ms, unit];
  }
  return worst;
};

/** Milliseconds of drawing an answer that grows token by token, and of all that time; whether it was shown in the end. */
globalThis.grown = async () => {
  const turn = new widget.turn.Turn("?", context);
  document.body.append(turn.node);
  const paragraph = "The library opens **at nine**, see [the fees](https://t.example/) for `codes`.\n\n- a\n- b\n\n";
  const frames = window.requestAnimationFrame;
  let drawing = 0;
  window.requestAnimationFrame = (draw) =>
    frames(() => {
      const begun = performance.now();
      draw();
      drawing += performance.now() - begun;
    });
  const begun = performance.now();
  for (let at = 0; at < ANSWER; at += paragraph.length) {
    turn.show({ type: "token", text: paragraph });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const whole = performance.now() - begun;
  window.requestAnimationFrame = frames;
  turn.end();
  return [drawing, whole, turn.node.querySelectorAll(".text > ul").length === Math.ceil(ANSWER / paragraph.length)];
};

/** Milliseconds of work that hangs on the machine alone. */
globalThis.calibrated = () => {
  const begun = performance.now();
  const list = document.createElement("ul");
  for (let i = 0; i < 10_000; i += 1) list.append(Object.assign(document.createElement("li"), { textContent: `${i}`.replace(/1/g, "one") }));
  return performance.now() - begun;
};
