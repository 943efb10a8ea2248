// The shim between workerd and Rust, in real workerd, with a glue that traps on command.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Miniflare } from "miniflare";
import { ROOT } from "./lib.mjs";

// (module (func (export "trap") unreachable))
const TRAP_WASM = Buffer.from("0061736d01000000010401600000030201000708010474726170000" + "00a05010300000b", "hex");

// Does what the glue of wasm-bindgen does: after a trap the next call makes a new instance, and calls that waited
// in the old one never end.
const GLUE = `
import module from "./trap.wasm";
const trap = () => new WebAssembly.Instance(module).exports.trap();
const state = { instanceId: 1 };
let broken = false;
function call(work) {
  if (broken) { broken = false; state.instanceId += 1; }
  const instance = state.instanceId;
  return new Promise((resolve, reject) => queueMicrotask(async () => {
    const alive = (end) => (value) => { if (instance === state.instanceId && !broken) end(value); };
    let answer;
    try { answer = await work(); } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) { broken = true; queueMicrotask(() => { throw error; }); return; }
      return alive(reject)(error);
    }
    alive(resolve)(answer ?? new Response(String(instance)));
  }));
}
export function __worker_init_state() { if (broken) { broken = false; state.instanceId += 1; } return state; }
export function fetch(request, env) {
  const { pathname } = new URL(request.url);
  if (pathname.startsWith("/object")) return call(() => env.OBJECT.getByName("one").fetch(request));
  return call(async () => {
    await scheduler.wait(pathname === "/slow" ? 60000 : 1);
    if (pathname === "/trap") trap();
  });
}
export class Repository {
  constructor(ctx) {
    this.sql = ctx.storage.sql;
    this.sql.exec("CREATE TABLE IF NOT EXISTS t (a)");
    this.calls = 0;
  }
  async fetch(request) {
    this.calls += 1;
    const { pathname } = new URL(request.url);
    if (pathname === "/object/rows") {
      const { n } = this.sql.exec("SELECT count(*) AS n FROM t").one();
      return Response.json({ rows: n, calls: this.calls });
    }
    return call(async () => {
      await scheduler.wait(1);
      this.sql.exec("INSERT INTO t VALUES (1)");
      if (pathname === "/object/trap") trap();
    });
  }
}
`;

async function start(t) {
  const shim = readFileSync(join(ROOT, "scripts/shim.mjs"), "utf8");
  const miniflare = new Miniflare({
    modules: [
      { type: "ESModule", path: "shim.mjs", contents: `${shim}\nexport const Repository = host(rust.Repository);\n` },
      { type: "ESModule", path: "index.js", contents: GLUE },
      { type: "CompiledWasm", path: "trap.wasm", contents: TRAP_WASM },
    ],
    compatibilityDate: "2026-04-01",
    durableObjects: { OBJECT: { className: "Repository", useSQLite: true } },
    cf: false,
    handleRuntimeStdio: (stdout, stderr) => [stdout, stderr].forEach((stream) => stream.resume()),
  });
  t.after(() => miniflare.dispose());
  const url = await miniflare.ready;
  return async (path) => {
    const response = await fetch(new URL(path, url));
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };
}

test("a trap answers its own request with a problem and the next one meets a fresh instance", { timeout: 30_000 }, async (t) => {
  const get = await start(t);
  assert.equal((await get("/")).text, "1");
  const answer = await get("/trap");
  assert.equal(answer.status, 500);
  assert.equal(answer.type, "application/problem+json");
  assert.match(JSON.parse(answer.text).detail, /trapped/);
  assert.equal((await get("/")).text, "2");
});

test("a trap ends the calls that waited in the same instance", { timeout: 30_000 }, async (t) => {
  const get = await start(t);
  const slow = get("/slow");
  await get("/");
  await get("/trap");
  assert.equal((await slow).status, 500);
});

test("what an object had not committed when it trapped is rolled back", { timeout: 30_000 }, async (t) => {
  const get = await start(t);
  await get("/object/insert");
  assert.deepEqual(JSON.parse((await get("/object/rows")).text), { rows: 1, calls: 2 });
  const answer = await get("/object/trap");
  assert.equal(answer.status, 500);
  assert.equal(answer.type, "application/problem+json");
  assert.deepEqual(JSON.parse((await get("/object/rows")).text), { rows: 1, calls: 1 });
});

test("an object builds its half in Rust anew after a trap elsewhere", { timeout: 30_000 }, async (t) => {
  const get = await start(t);
  await get("/object/insert");
  await get("/trap");
  assert.deepEqual(JSON.parse((await get("/object/rows")).text), { rows: 1, calls: 1 });
});
