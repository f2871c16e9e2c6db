/** One server-sent event. */
export interface ServerEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Splits a text that arrives in pieces into the events of the event-stream format, without recursion or look-back. */
export class EventParser {
  #rest = "";
  #id: string | undefined;

  #event = "";
  #data: string[] = [];

  /** The last id that was sent, with an event or without one: where to go on from. */
  get lastId(): string | undefined {
    return this.#id;
  }

  /** Takes the next piece; answers the events that it completed. */
  push(piece: string): readonly ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.#take(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event !== undefined) events.push(event);
    }
    return events;
  }

  #take(line: string): ServerEvent | undefined {
    if (line === "") {
      const complete =
        this.#data.length === 0
          ? undefined
          : { id: this.#id, event: this.#event === "" ? "message" : this.#event, data: this.#data.join("\n") };
      this.#event = "";
      this.#data = [];
      return complete;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.#id = value;
    else if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    return undefined;
  }
}
