/**
 * Questions out, answer events in, over a network that breaks.
 *
 *   ask ─▶ POST chat ─▶ events ··connection lost·· GET answers/{id}/events (Last-Event-ID) ─▶ the rest ─▶ done
 *
 * The events are those of the gateway's answer stream, as {event, data}; "reconnecting" is our own.
 */

const SILENCE = 25_000; // ms; the server sends a heartbeat every 10 s, so two lost ones mean a dead connection
const PAUSES = [300, 1_000, 2_000, 4_000, 8_000]; // ms before each new try without any progress
const TOKEN_MARGIN = 30_000; // ms of a visitor token's life that are not relied upon

/** The gateway refused, or could not be reached: `code` is a problem document's, or "network". */
export class AskError extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

export class AnswerClient {
  /**
   * @param {string} base where the gateway's API is, for example "https://chat.example.org/v1"
   * @param {string} site
   */
  constructor(base, site) {
    this.url = `${base}/sites/${encodeURIComponent(site)}`;
    this.storageKey = `pagewire-token:${this.url}`;
  }

  /**
   * Ask, and yield the answer's events until "done".
   * @param {{question: string, conversation_id?: string, lang: string}} question
   * @param {AbortSignal} signal stops it
   * @throws {AskError}
   */
  async *ask(question, signal) {
    let open = () => this.#fetch("chat", { method: "POST", body: JSON.stringify(question) }, signal);
    let failures = 0;
    let lastId = null;
    for (;;) {
      try {
        for await (const { id, event, data } of readEvents(await open(), signal)) {
          lastId = id;
          failures = 0;
          if (event === "accepted") {
            const path = `answers/${data.request_id}/events`;
            open = () => this.#fetch(path, { headers: { "Last-Event-ID": lastId } }, signal);
          }
          yield { event, data };
          if (event === "done") return;
        }
      } catch (error) {
        // A refusal is final, unless the gateway we come back to is only just starting.
        if (signal.aborted || (error instanceof AskError && !(lastId && error.code === "unavailable"))) throw error;
      }
      // Before the first event nothing can be resumed, and asking twice would answer twice.
      if (lastId === null || failures === PAUSES.length) throw new AskError("network");
      yield { event: "reconnecting", data: {} };
      await pause(PAUSES[failures++], signal);
    }
  }

  /** A response that is fine; the visitor token is renewed once when it is refused. */
  async #fetch(path, { headers = {}, ...options }, signal) {
    for (let renewed = false; ; renewed = true) {
      const token = await this.#token(renewed, signal);
      const response = await fetch(`${this.url}/${path}`, {
        ...options,
        signal,
        headers: {
          ...headers,
          Accept: "text/event-stream",
          Authorization: `Bearer ${token}`,
          ...(options.body && { "Content-Type": "application/json" }),
        },
      });
      if (response.status === 401 && !renewed) continue;
      return checked(response);
    }
  }

  async #token(renew, signal) {
    const kept = stored(this.storageKey);
    if (kept && !renew && Date.parse(kept.expires_at) - Date.now() > TOKEN_MARGIN) return kept.token;
    const response = await fetch(`${this.url}/visitor-tokens`, { method: "POST", signal });
    const fresh = await (await checked(response)).json();
    store(this.storageKey, fresh);
    return fresh.token;
  }
}

async function checked(response) {
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new AskError(problem.code ?? "failed");
}

/** Server-sent events of a response (WHATWG HTML 9.2.6); ends with it, throws when it breaks or goes silent. */
async function* readEvents(response, signal) {
  if (response.status === 204) {
    yield { id: null, event: "done", data: {} };
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read(), signal);
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const fields = Object.fromEntries(
          block.split("\n").filter((line) => !line.startsWith(":")).map((line) => line.split(/: (.*)/s, 2)),
        );
        if (fields.data) yield { id: fields.id, event: fields.event, data: JSON.parse(fields.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // already broken: nothing to tell
  }
}

async function inTime(promise, signal) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("silence")), SILENCE);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
    signal.throwIfAborted();
  }
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** sessionStorage, where the browser allows it: a page in a sandbox simply forgets. */
export function stored(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

export function store(key, value) {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // See above.
  }
}
