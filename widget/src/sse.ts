/** Server-sent events of a response (WHATWG HTML, 9.2.6), as far as our gateway uses them. */

import type { Event } from "./wire";

const SILENCE = 25_000; // ms; the gateway sends a heartbeat every 10 s, so two lost ones mean a dead connection

export interface ServerSentEvent {
  id: string | null;
  event: Event;
}

/** Ends with the response; throws when it breaks or goes silent. */
export async function* readEvents(response: Response, signal?: AbortSignal): AsyncGenerator<ServerSentEvent> {
  if (response.status === 204 || !response.body) {
    yield { id: null, event: { type: "done" } };
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read(), signal);
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parse(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // already broken: nothing to tell
  }
}

/** Null for a comment. */
function parse(block: string): ServerSentEvent | null {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
  }
  const data = fields.get("data");
  if (data === undefined) return null;
  return { id: fields.get("id") ?? null, event: { ...JSON.parse(data), type: fields.get("event") } as Event };
}

async function inTime<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  let timer = 0;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("silence")), SILENCE);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
    signal?.throwIfAborted();
  }
}
