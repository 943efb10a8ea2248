// What workerd loads: classes that pass every call on to the Rust side and survive its traps.
//
// A trap (a panic is one) leaves the memory of the module in an unknown state, and every call that was waiting in
// it would wait for ever. So a trap ends all calls in flight with an error, every object that was at work is
// aborted, which rolls back what it had not committed, and the next call finds a fresh instance: the glue makes it
// on its own once its abort hook has run, and each object builds its Rust half anew when it sees a new instance.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import * as rust from "./index.js";

class Trap extends Error {}

const inFlight = new Set();

/** Ends every call in flight: none of them can come back. */
function trapped(cause) {
  const calls = [...inFlight];
  inFlight.clear();
  console.error(`trap: ${calls.length} calls ended:`, cause);
  for (const fail of calls) fail(new Trap(`the module trapped: ${cause?.message}`));
}

// A trap after the first await of a call surfaces here, not in the call.
addEventListener("error", (event) => {
  if (event.error instanceof WebAssembly.RuntimeError) trapped(event.error);
});

/** Runs one call into Rust; ends with its answer, its error, or a Trap. */
function guarded(call) {
  return new Promise((resolve, reject) => {
    inFlight.add(reject);
    const settle = (end) => (value) => {
      inFlight.delete(reject);
      end(value);
    };
    try {
      Promise.resolve(call()).then(settle(resolve), settle(reject));
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) trapped(error);
      settle(reject)(error);
    }
  });
}

/** The number of the instance that the next call will meet; a trapped one is replaced by asking. */
const instance = () => rust.__worker_init_state().instanceId;

const HANDLERS = ["fetch", "alarm", "webSocketMessage", "webSocketClose", "webSocketError"];

/** The class that workerd sees for a class in Rust, with the handlers that the class has and no others. */
function host(Inner) {
  return class extends DurableObject {
    #inner;
    #instance;

    static {
      for (const handler of HANDLERS.filter((name) => Object.hasOwn(Inner.prototype, name))) {
        this.prototype[handler] = function (...args) {
          return this.#run(handler, args);
        };
      }
    }

    constructor(ctx, env) {
      super(ctx, env);
      this.#build();
    }

    #build() {
      this.#instance = instance();
      this.#inner = new Inner(this.ctx, this.env);
    }

    async #run(handler, args) {
      try {
        if (this.#instance !== instance()) this.#build();
        return await guarded(() => this.#inner[handler](...args));
      } catch (error) {
        if (error instanceof Trap) this.ctx.abort(error.message);
        throw error;
      }
    }
  };
}

export default class Edge extends WorkerEntrypoint {
  async fetch(request) {
    // While nothing else is pending, the runtime would take a call that a trap elsewhere has just ended for a hung
    // one, before the news of it arrives.
    const pending = setInterval(() => {}, 60_000);
    try {
      return await guarded(() => rust.fetch(request, this.env, this.ctx));
    } catch (error) {
      const problem = { type: "about:blank", title: "Internal error", status: 500, detail: String(error?.message) };
      return Response.json(problem, { status: 500, headers: { "content-type": "application/problem+json" } });
    } finally {
      clearInterval(pending);
    }
  }

  queue(batch) {
    return guarded(() => rust.queue(batch, this.env, this.ctx));
  }

  scheduled(event) {
    return guarded(() => rust.scheduled(event, this.env, this.ctx));
  }
}
