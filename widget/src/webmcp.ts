/**
 * WebMCP: an assistant in the browser may search and ask as the visitor does, where the page has the attribute `webmcp`.
 * A draft (https://webmachinelearning.github.io/webmcp): `document.modelContext`, before 2026-06 `navigator.modelContext`.
 */

import type { AnswerClient } from "./client";

interface Tool {
  name: string;
  description: string;
  inputSchema: object;
  annotations: { readOnlyHint: true };
  execute: (input: Record<string, string>) => Promise<object>;
}

interface ModelContext {
  registerTool(tool: Tool, options: { signal: AbortSignal }): unknown;
}

/** Register the tools; they go when the signal is aborted. Nothing happens in a browser that has no such thing. */
export async function offerTools(client: AnswerClient, lang: string, signal: AbortSignal): Promise<void> {
  const { modelContext } = { ...context(navigator), ...context(document) };
  try {
    const search = (input: Record<string, string>) => client.get<object>(`search?size=8&q=${encodeURIComponent(input.query ?? "")}${client.labelled}`, signal);
    const ask = (input: Record<string, string>) => answer(client, input.question ?? "", lang, signal);
    for (const tool of [
      described("search", "Find passages of this website, each with its page's title and address.", "query", search),
      described("ask", "Answer a question from this website's pages, with its sources.", "question", ask),
    ]) {
      await modelContext?.registerTool(tool, { signal });
    }
  } catch {
    // another script has such tools, or the draft has gone on
  }
}

function context(holder: object): { modelContext?: ModelContext } {
  const { modelContext } = holder as { modelContext?: ModelContext };
  return modelContext ? { modelContext } : {};
}

function described(name: string, description: string, input: string, execute: Tool["execute"]): Tool {
  const inputSchema = { type: "object", properties: { [input]: { type: "string" } }, required: [input] };
  return { name, description, inputSchema, annotations: { readOnlyHint: true }, execute };
}

async function answer(client: AnswerClient, question: string, lang: string, signal: AbortSignal): Promise<object> {
  for await (const event of client.ask({ question, lang }, signal)) {
    if (event.type === "error") throw new Error(event.message);
    if (event.type !== "answer") continue;
    const sources = event.sources.filter(({ cited }) => cited).map(({ n, title, url, text }) => ({ n, title, url, text }));
    return { answer: event.text, answered: sources.length > 0, sources };
  }
  throw new Error("no answer");
}
