// The events that are at hand: in order, each once, none missing between the oldest and the newest.

/** Events kept in the page. */
export const KEPT = 2000;

export class Log {
  /** The cursor of the newest event taken; null before the first page. */
  cursor = null;
  /** `{cursor, event}`, oldest first. */
  entries = [];
  /** True while there are older events than those at hand. */
  older = false;
  #early = new Map();

  /** Takes the newest events as a beginning. */
  begin({ events, next }) {
    this.entries = [];
    this.#early.clear();
    this.cursor = events.length > 0 ? events[0][0] - 1 : next;
    this.older = this.cursor > 0;
    return this.#take(events).news;
  }

  /**
   * Takes what a socket tells. `gap` is true when events before it are missing: then it waits until `fill` brought
   * them. What was there already is dropped.
   */
  told(cursor, event) {
    if (this.cursor === null || cursor > this.cursor + 1) {
      this.#early.set(cursor, event);
      // A flood while the gap is being filled: the pages bring what is dropped here.
      if (this.#early.size > KEPT) this.#early.clear();
      return { news: [], gap: true };
    }
    return { news: [...this.#take([[cursor, event]]).news, ...this.#waiting()], gap: this.#early.size > 0 };
  }

  /** Takes a page that was asked for after the cursor; `lost` is true when the platform keeps some of them no more. */
  fill({ events }) {
    const { news, lost } = this.#take(events);
    news.push(...this.#waiting());
    return { news, lost, gap: this.#early.size > 0 };
  }

  /** Does anything wait for events before it? */
  get gap() {
    return this.#early.size > 0;
  }

  /** Goes on behind a gap that nobody can fill. */
  skip() {
    if (this.#early.size === 0) return [];
    this.cursor = Math.min(...this.#early.keys()) - 1;
    return this.#waiting();
  }

  #take(events) {
    const news = [];
    let lost = false;
    for (const [cursor, event] of events) {
      if (cursor <= this.cursor) continue;
      lost ||= cursor > this.cursor + 1;
      this.cursor = cursor;
      this.entries.push({ cursor, event });
      news.push(event);
    }
    if (this.entries.length > KEPT) {
      this.entries.splice(0, this.entries.length - KEPT);
      this.older = true;
    }
    return { news, lost };
  }

  /** What waited and follows now. */
  #waiting() {
    for (const cursor of this.#early.keys()) if (cursor <= this.cursor) this.#early.delete(cursor);
    const news = [];
    while (this.#early.has(this.cursor + 1)) {
      const cursor = this.cursor + 1;
      news.push(...this.#take([[cursor, this.#early.get(cursor)]]).news);
      this.#early.delete(cursor);
    }
    return news;
  }
}
