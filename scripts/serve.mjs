// Runs the built Worker on this machine: workerd with real Durable Objects, R2, D1 and queues, set up from
// wrangler.toml alone. Needs no network.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Log, LogLevel, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions, unstable_getVarsForDev } from "wrangler";
import { config } from "./lib/config.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const USAGE = `Runs the built Worker on this machine: one platform, its state on disk.

usage: node scripts/serve.mjs [options]
  --port N          port on 127.0.0.1; 0 takes a free one (default 8787)
  --state FOLDER    where objects, R2 and D1 are kept (default .state); queues live in memory only
  --build FOLDER    what to run (default build, or YARD_BUILD)
  --secret TEXT     SWITCHYARD_SECRET; else the environment, .dev.vars, or one kept in the state folder
  --var NAME=VALUE  another variable for the Worker; may be repeated. SWITCHYARD_MODEL... of the environment
                    are passed on (engine/replay/src/settings.rs names them)
  --respawn         start workerd again on the same state and port when it dies; else exit with code 3
  --kill-at NAME#N  kill -9 the first workerd at the N-th pass of that point (durable-objects/src/points.rs);
                    given again, the next life (with --respawn) dies at the next one; the last has none
  --tick SECONDS    how often the cron trigger fires (default 60; 0 never)
  --inspector N     port of workerd's inspector (default: none; 0 takes a free one)
  --quiet           do not pass on what the Worker prints
  --until-eof       stop when standard input ends: with the process that started this one
  --help            this text

Prints one line of JSON on standard output whenever it is ready:
  {"url":"http://127.0.0.1:8787","pid":1,"workerd_pid":2,"inspector":null,"starts":1}
SIGTERM or SIGINT stops both processes. What the Worker prints goes to standard error.
`;
const EXIT_USAGE = 2;
const POLL_MS = 50;
const EXIT_WORKERD_DIED = 3;
// Of the batches that `max_concurrency` lets be under way at once: Miniflare hands out one after the other, so here
// these come as one.
const BATCHES_AT_ONCE = 3;

/** A command line that this program does not take. */
class UsageError extends Error {}

function parsed(options) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function readOptions() {
  const values = parsed({
    port: { type: "string", default: "8787" },
    state: { type: "string", default: ".state" },
    build: { type: "string", default: process.env.YARD_BUILD ?? "build" },
    secret: { type: "string" },
    var: { type: "string", multiple: true, default: [] },
    respawn: { type: "boolean", default: false },
    "kill-at": { type: "string", multiple: true, default: [] },
    tick: { type: "string", default: "60" },
    inspector: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
    quiet: { type: "boolean", default: false },
    "until-eof": { type: "boolean", default: false },
  });
  const number = (name) => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 0) throw new UsageError(`--${name} takes a whole number`);
    return value;
  };
  const vars = values.var.map((text) => {
    const at = text.indexOf("=");
    if (at < 1) throw new UsageError(`--var takes NAME=VALUE, not ${text}`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return {
    ...values,
    port: number("port"),
    tick: number("tick"),
    inspector: values.inspector === undefined ? undefined : number("inspector"),
    state: resolve(values.state),
    build: resolve(ROOT, values.build),
    vars: Object.fromEntries(vars),
  };
}

/** The platform's secret: given, from the environment or `.dev.vars`, or made once and kept with the state. */
function secret(options, devVars) {
  const given = options.secret ?? process.env.SWITCHYARD_SECRET ?? devVars.SWITCHYARD_SECRET?.value;
  if (given) return given;
  const file = join(options.state, "secret");
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString("hex"), { mode: 0o600 });
  return readFileSync(file, "utf8");
}

/** The model's settings in the environment. */
function model() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("SWITCHYARD_MODEL")));
}

/** The process ids of the workerd processes that `parent` started. */
function workerds(parent) {
  const found = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      // pid (comm) state ppid ...
      const [, name, fields] = readFileSync(`/proc/${entry}/stat`, "utf8").match(/\((.*)\) (.*)/s);
      if (name === "workerd" && Number(fields.split(" ")[1]) === parent) found.push(Number(entry));
    } catch {
      // The process ended meanwhile.
    }
  }
  return found;
}

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Takes the state folder; two platforms on one SQLite file would lose data, so a live owner is an error. */
async function takeState(folder) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "serve.json");
  if (!existsSync(file)) return;
  const last = JSON.parse(readFileSync(file, "utf8"));
  if (last.pid !== process.pid && commandLine(last.pid).includes("serve.mjs")) {
    throw new Error(`${folder} is in use by process ${last.pid}; stop it, or give another --state`);
  }
  // A serve process that was killed leaves its workerd behind.
  while (commandLine(last.workerd_pid).includes("workerd")) {
    process.kill(last.workerd_pid, "SIGKILL");
    await pause(POLL_MS);
  }
}

/** The settings of the queues' consumers, with batches as wide as those that production has under way together. */
function consumers(settings) {
  const wide = ({ queue, max_concurrency: most }) => {
    const one = settings[queue];
    return [queue, { ...one, maxBatchSize: one.maxBatchSize * Math.min(BATCHES_AT_ONCE, most ?? BATCHES_AT_ONCE) }];
  };
  return Object.fromEntries(config(ROOT).queues.consumers.map(wide));
}

/** What Miniflare is told about the Worker: all of it from wrangler.toml, but for the variables. */
function workerOptions(options, killAt) {
  const path = join(ROOT, "wrangler.toml");
  const main = join(options.build, "index.js");
  if (!existsSync(main)) throw new Error(`${main} is not there: run \`make build\``);
  const { workerOptions } = unstable_getMiniflareWorkerOptions(path);
  const devVars = unstable_getVarsForDev(path, undefined, {}, undefined, true);
  const kill = killAt ? { SWITCHYARD_POINTS: killAt } : {};
  return {
    ...workerOptions,
    name: config(ROOT).name,
    queueConsumers: consumers(workerOptions.queueConsumers),
    modulesRoot: options.build,
    modules: [
      { type: "ESModule", path: main },
      { type: "CompiledWasm", path: join(options.build, "index_bg.wasm") },
    ],
    bindings: {
      ...workerOptions.bindings,
      SWITCHYARD_ENVIRONMENT: "local",
      ...Object.fromEntries(Object.entries(devVars).map(([name, { value }]) => [name, value])),
      SWITCHYARD_SECRET: secret(options, devVars),
      ...model(),
      ...options.vars,
      ...kill,
    },
    // A socket of its own: Miniflare's entry Worker in front of ours costs more than a small request of ours.
    unsafeDirectSockets: [{ host: "127.0.0.1", port: options.port }],
  };
}

/**
 * Fires the cron trigger of the Worker that it is bound to, by a call of its method. Miniflare's own way waits for
 * workerd synchronously, so that nobody would see to a workerd that stops meanwhile.
 */
const CRON = {
  name: "cron",
  modules: true,
  compatibilityDate: "2025-01-01",
  script: `export default {
    async fetch(request, { WORKER }) {
      try {
        await WORKER.scheduled({ cron: "${config(ROOT).triggers.crons[0]}", scheduledTime: Date.now() });
        return new Response("done");
      } catch (error) {
        return new Response(String(error), { status: 500 });
      }
    },
  };`,
  unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
};

/** One life of workerd. */
class Platform {
  #options;
  #starts = 0;
  #killed = false;
  #miniflare;
  #stopping = false;

  constructor(options) {
    this.#options = options;
  }

  async start() {
    const options = this.#options;
    this.#starts += 1;
    this.#killed = false;
    const killAt = options["kill-at"][this.#starts - 1];
    const worker = workerOptions(options, killAt);
    this.#miniflare = new Miniflare({
      workers: [worker, { ...CRON, serviceBindings: { WORKER: worker.name } }],
      host: "127.0.0.1",
      port: 0,
      log: new Log(LogLevel.WARN),
      logRequests: false,
      defaultPersistRoot: options.state,
      // Cloudflare's description of a request; the default would fetch one.
      cf: false,
      telemetry: { enabled: false },
      inspectorPort: options.inspector,
      handleRuntimeStdio: (stdout, stderr) => [stdout, stderr].forEach((stream) => this.#listen(stream, killAt)),
    });
    try {
      await this.#miniflare.ready;
    } catch (error) {
      // An alarm may pass the point before the sockets are open.
      if (!this.#killed || !options.respawn) throw error;
      await this.#miniflare.dispose().catch(() => {});
      return this.start();
    }
    const url = await this.#miniflare.unsafeGetDirectURL(worker.name);
    // The next life takes the same port.
    options.port = Number(url.port);
    const [workerd] = workerds(process.pid);
    this.#announce(url, workerd, await this.#inspector());
    this.#watch(workerd);
  }

  async #inspector() {
    return this.#options.inspector === undefined ? null : String(await this.#miniflare.getInspectorURL());
  }

  #announce(url, workerd, inspector) {
    const line = { url: url.origin, pid: process.pid, workerd_pid: workerd, inspector, starts: this.#starts };
    writeFileSync(join(this.#options.state, "serve.json"), JSON.stringify(line));
    console.log(JSON.stringify(line));
  }

  #listen(stream, killAt) {
    const point = killAt?.split("#")[0];
    createInterface({ input: stream }).on("line", (line) => {
      if (!this.#options.quiet) console.error(line);
      if (point && line.trim() === `POINT ${point}`) {
        this.#killed = true;
        for (const pid of workerds(process.pid)) process.kill(pid, "SIGKILL");
      }
    });
  }

  async #watch(workerd) {
    while (alive(workerd)) await pause(POLL_MS);
    if (this.#stopping) return;
    console.error(`serve: workerd ${workerd} died`);
    await this.#miniflare.dispose().catch(() => {});
    if (!this.#options.respawn) process.exit(EXIT_WORKERD_DIED);
    await this.start().catch(fail);
  }

  /** Fires the cron trigger, which nothing else does on one machine. */
  async tick() {
    const done = await fetch(await this.#miniflare.unsafeGetDirectURL(CRON.name));
    if (!done.ok) throw new Error(await done.text());
  }

  async stop() {
    if (this.#stopping) return;
    this.#stopping = true;
    await this.#miniflare?.dispose().catch(() => {});
    rmSync(join(this.#options.state, "serve.json"), { force: true });
    process.exit(0);
  }
}

function fail(error) {
  console.error(`serve: ${error.message}`);
  if (error instanceof UsageError) console.error(`\n${USAGE}`);
  process.exit(error instanceof UsageError ? EXIT_USAGE : 1);
}

async function main() {
  const options = readOptions();
  if (options.help) {
    process.stdout.write(USAGE);
    return;
  }
  await takeState(options.state);
  const platform = new Platform(options);
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => platform.stop());
  if (options["until-eof"]) process.stdin.resume().on("end", () => platform.stop());
  await platform.start();
  if (options.tick === 0) return;
  setInterval(() => {
    platform.tick().catch((error) => console.error(`serve: cron: ${error.message}`));
  }, options.tick * 1000);
}

main().catch(fail);
