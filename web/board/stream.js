// The event socket: opened at the cursor, opened again when it ends, and never trusted to have told everything.
import { Log } from "./log.js";

export const PROTOCOL = "switchyard.events";
export const TOKEN_PROTOCOL = "switchyard.token.";
/** Events in a first page. */
const FIRST = 1000;
const BACKOFF_MS = [1000, 2000, 4000, 8000, 15_000, 30_000];
/** How often a live socket is checked by a page after the cursor: news there means that it is dead. */
const CHECK_MS = 30_000;

/**
 * Follows the events of one repository.
 *
 * `outside` is what it stands on: `page(query)` fetches `{events, next}` and throws an error whose `final` is true when
 * asking again is of no use; `socket(after, protocols)` opens a WebSocket; `later(f, ms)` and `never(handle)` are
 * timers. `onEvents(events, {first, lost})` gets each event once and in order; `lost` says that some are kept no more;
 * `onState(state, detail)` gets `connecting`, `live`, `waiting` or `refused`.
 */
export class Stream {
  log = new Log();
  state = "off";
  #token;
  #outside;
  #socket = null;
  #timer = null;
  #check = null;
  #tries = 0;
  #filling = null;
  #round = 0;
  #quiet = true;

  constructor(token, outside) {
    this.#token = token;
    this.#outside = outside;
  }

  /** Begins, or begins again at once. */
  async start() {
    const round = ++this.#round;
    this.#drop();
    this.#tell("connecting");
    try {
      await this.#catchUp();
    } catch (error) {
      if (round === this.#round) this.#failed(error);
      return;
    }
    if (round === this.#round) this.#open(round);
  }

  /** Ends; nothing is told any more. */
  stop() {
    this.#round += 1;
    this.#drop();
    this.state = "off";
  }

  /** The page is looked at again, or the network is back: a socket that slept may be dead without having said so. */
  wake() {
    if (this.state === "waiting") {
      this.#tries = 0;
      this.start();
    } else if (this.state === "live") {
      this.#verify();
    }
  }

  #tell(state, detail) {
    this.state = state;
    this.#outside.onState(state, detail);
  }

  #drop() {
    this.#outside.never(this.#timer);
    this.#outside.never(this.#check);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #failed(error) {
    this.#drop();
    if (error?.final) return this.#tell("refused", error);
    const delay = BACKOFF_MS[Math.min(this.#tries, BACKOFF_MS.length - 1)];
    this.#tries += 1;
    this.#tell("waiting", { delay, error });
    this.#timer = this.#outside.later(() => this.start(), delay);
  }

  #open(round) {
    const protocols = [PROTOCOL, TOKEN_PROTOCOL + this.#token];
    const socket = this.#outside.socket(this.log.cursor, protocols);
    this.#socket = socket;
    const own = () => this.#socket === socket && round === this.#round;
    socket.onopen = () => {
      if (!own()) return;
      this.#tries = 0;
      this.#tell("live");
      this.#arm();
    };
    socket.onmessage = ({ data }) => {
      if (own()) this.#heard(data);
    };
    socket.onclose = () => {
      if (own()) this.#failed(new Error("the connection ended"));
    };
  }

  #heard(data) {
    let told;
    try {
      told = JSON.parse(data);
    } catch {
      return;
    }
    if (!Array.isArray(told) || !Number.isSafeInteger(told[0])) return;
    this.#quiet = false;
    const { news, gap } = this.log.told(told[0], told[1]);
    this.#give(news, {});
    if (gap) this.#catchUp().catch((error) => this.#failed(error));
  }

  #give(news, how) {
    if (news.length > 0 || how.first || how.lost) this.#outside.onEvents(news, how);
  }

  /** Reads pages until there are no more; several callers share one reading. */
  #catchUp() {
    this.#filling ??= this.#pages().finally(() => (this.#filling = null));
    return this.#filling;
  }

  async #pages() {
    if (this.log.cursor === null) {
      const news = this.log.begin(await this.#outside.page({ last: FIRST }));
      this.#give(news, { first: true });
    }
    let found = 0;
    for (;;) {
      const page = await this.#outside.page({ after: this.log.cursor });
      if (page.events.length === 0) {
        if (this.log.gap) this.#give(this.log.skip(), { lost: true });
        return found;
      }
      const { news, lost } = this.log.fill(page);
      found += news.length;
      this.#give(news, { lost });
    }
  }

  #arm() {
    this.#outside.never(this.#check);
    this.#quiet = true;
    this.#check = this.#outside.later(() => (this.#quiet ? this.#verify() : this.#arm()), CHECK_MS);
  }

  /** What a page finds although the socket is silent says that the socket is dead. */
  async #verify() {
    const round = this.#round;
    try {
      const before = this.log.cursor;
      await this.#catchUp();
      if (round !== this.#round || this.state !== "live") return;
      if (this.log.cursor > before) {
        this.start();
      } else {
        this.#arm();
      }
    } catch (error) {
      if (round === this.#round) this.#failed(error);
    }
  }
}
