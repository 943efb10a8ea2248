// What was built fits what wrangler.toml promises.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { classes, config } from "../lib/config.mjs";
import { toolchain } from "../lib/toolchain.mjs";
import { ROOT, folder } from "./lib.mjs";

async function exported() {
  const result = await build({
    entryPoints: [join(ROOT, "build/index.js")],
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    outdir: "out",
    external: ["./index_bg.wasm", "cloudflare:workers"],
  });
  return Object.values(result.metafile.outputs)[0].exports;
}

test("the module exports every class of wrangler.toml, a default handler and nothing else", async () => {
  assert.deepEqual((await exported()).sort(), [...classes(ROOT), "default"].sort());
});

test("every class that is bound keeps its state in SQLite", () => {
  const sqlite = config(ROOT).migrations.flatMap((migration) => migration.new_sqlite_classes ?? []);
  assert.deepEqual(sqlite.sort(), classes(ROOT).sort());
});

test("every queue that is consumed has a dead-letter queue and its settings written out", () => {
  const settings = ["max_batch_size", "max_batch_timeout", "max_retries", "retry_delay", "dead_letter_queue"];
  for (const consumer of config(ROOT).queues.consumers) {
    for (const name of settings) assert.notEqual(consumer[name], undefined, `${consumer.queue}: ${name}`);
  }
});

test("the glue generator fits the locked wasm-bindgen, and says what to do when it does not", (t) => {
  const { bindgen } = toolchain(ROOT);
  assert.equal(spawnSync(bindgen, ["--check", join(ROOT, "Cargo.lock")]).status, 0);
  const other = join(folder(t), "Cargo.lock");
  writeFileSync(other, '[[package]]\nname = "wasm-bindgen"\nversion = "0.0.1"\n');
  const wrong = spawnSync(bindgen, ["--check", other], { encoding: "utf8" });
  assert.equal(wrong.status, 1);
  assert.match(wrong.stderr, /has wasm-bindgen 0\.0\.1, .* to =0\.0\.1 and run `make setup`/s);
});

test("the npm lock file names no registry", () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const named = Object.entries(packages).filter(([, entry]) => entry.resolved !== undefined);
  assert.deepEqual(named, []);
});

test("wrangler accepts the same configuration and uploads the built files as they are", (t) => {
  const out = folder(t);
  const wrangler = join(ROOT, "node_modules/.bin/wrangler");
  const done = spawnSync(wrangler, ["deploy", "--dry-run", "--outdir", out], { cwd: ROOT, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  for (const name of ["index.js", "index_bg.wasm"]) {
    assert.ok(readFileSync(join(out, name)).equals(readFileSync(join(ROOT, "build", name))), name);
  }
});
