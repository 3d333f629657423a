/**
 * Questions out, answer events in, over a network that breaks.
 *
 *   ask ─▶ POST chat ─▶ events ··connection lost·· GET answers/{id}/events (Last-Event-ID) ─▶ the rest ─▶ done
 *   stop ─▶ DELETE answers/{id} ─▶ the stream ends with what is there
 *
 * The events are those of the gateway's answer stream, as {event, data}; "reconnecting" is our own.
 */

const SILENCE = 25_000; // ms; the server sends a heartbeat every 10 s, so two lost ones mean a dead connection
const PAUSES = [300, 1_000, 2_000, 4_000, 8_000]; // ms before each new try without any progress
const TOKEN_MARGIN = 30_000; // ms of a visitor token's life that are not relied upon

/** The gateway refused, or could not be reached: `code` is a problem document's, or "network". */
export class AskError extends Error {
  constructor(code, requestId) {
    super(code);
    this.code = code;
    this.requestId = requestId; // of the answer that is in the way, with "answer-under-way"
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
    const post = () => this.#fetch("chat", { method: "POST", body: JSON.stringify(question) }, signal);
    yield* this.#follow(async () => {
      try {
        return await post();
      } catch (error) {
        // What the visitor asks last is what they want; and a conversation that is gone is begun anew.
        if (error.code === "answer-under-way") await this.stop(error.requestId);
        else if (error.code === "unknown-conversation") question = { ...question, conversation_id: undefined };
        else throw error;
        return post();
      }
    }, signal);
  }

  /** Ask a conversation's last question again; events as for `ask`. */
  async *regenerate(conversationId, signal) {
    const path = `conversations/${conversationId}/regenerate`;
    yield* this.#follow(() => this.#fetch(path, { method: "POST" }, signal), signal);
  }

  /** An answer that was asked for before this page was loaded, from its beginning; events as for `ask`. */
  async *resume(requestId, signal) {
    yield* this.#follow(() => this.#fetch(`answers/${requestId}/events`, {}, signal), signal, requestId);
  }

  /** Nobody wants more of this answer. Its stream goes on to its end, which is near. */
  async stop(requestId) {
    await this.#fetch(`answers/${requestId}`, { method: "DELETE" });
  }

  /** @param {"up" | "down"} rating */
  async rate(requestId, rating) {
    await this.#fetch(`answers/${requestId}/feedback`, { method: "POST", body: JSON.stringify({ rating }) });
  }

  /** The visitor's conversations: {today, yesterday, last_week, older}. */
  async conversations() {
    return (await this.#fetch(`conversations?utc_offset=${-new Date().getTimezoneOffset()}`)).json();
  }

  async conversation(id) {
    return (await this.#fetch(`conversations/${id}`)).json();
  }

  async remove(id) {
    await this.#fetch(`conversations/${id}`, { method: "DELETE" });
  }

  /** Take back the last question and its answer. */
  async undo(id) {
    await this.#fetch(`conversations/${id}/undo`, { method: "POST" });
  }

  async *#follow(open, signal, requestId = null) {
    let failures = 0;
    let lastId = null;
    for (;;) {
      try {
        for await (const { id, event, data } of readEvents(await open(), signal)) {
          lastId = id;
          failures = 0;
          if (event === "accepted") requestId = data.request_id;
          if (requestId) {
            const path = `answers/${requestId}/events`;
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
  async #fetch(path, { headers = {}, ...options } = {}, signal = undefined) {
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
    const kept = stored(this.storageKey, "localStorage");
    if (kept && !renew && Date.parse(kept.expires_at) - Date.now() > TOKEN_MARGIN) return kept.token;
    // With the last one, the visitor stays the same and keeps their conversations.
    const headers = kept ? { Authorization: `Bearer ${kept.token}` } : {};
    const response = await fetch(`${this.url}/visitor-tokens`, { method: "POST", headers, signal });
    const fresh = await (await checked(response)).json();
    store(this.storageKey, fresh, "localStorage");
    return fresh.token;
  }
}

async function checked(response) {
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new AskError(problem.code ?? "failed", problem.request_id);
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

/** Kept for this tab, or for longer in "localStorage", where the browser allows it: in a sandbox all is forgotten. */
export function stored(key, storage = "sessionStorage") {
  try {
    return JSON.parse(window[storage].getItem(key));
  } catch {
    return null;
  }
}

export function store(key, value, storage = "sessionStorage") {
  try {
    if (value === null) window[storage].removeItem(key);
    else window[storage].setItem(key, JSON.stringify(value));
  } catch {
    // See above.
  }
}
