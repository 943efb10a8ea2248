// The platform on one machine: starts, dies, comes back.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT, alive, folder, serve } from "./lib.mjs";

const SECRET = "a-secret-of-tests";

/** Makes a repository with an admin's token, as wire/src/token.rs has it; answers with the status. */
async function newRepo(url, name) {
  const claims = { id: "test", scopes: ["admin"], expires: Date.now() + 3_600_000 };
  const open = `sy1.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  const authorization = `Bearer ${open}.${createHmac("sha256", SECRET).update(open).digest("base64url")}`;
  const headers = { authorization, "content-type": "application/json", "idempotency-key": name };
  return (await fetch(`${url}/api/repos`, { method: "POST", headers, body: JSON.stringify({ name }) })).status;
}

const health = async (url) => (await fetch(`${url}/healthz`)).json();

test("a platform answers at the address that it prints and leaves no process behind", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t));
  const { url, workerd_pid } = await platform.next();
  assert.equal((await health(url)).ok, true);
  platform.child.kill("SIGTERM");
  assert.equal(await platform.ended, 0);
  assert.equal(alive(workerd_pid), false);
});

test("a platform ends when its workerd is killed", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t));
  const { workerd_pid } = await platform.next();
  process.kill(workerd_pid, "SIGKILL");
  assert.equal(await platform.ended, 3);
});

test("with --respawn a killed workerd comes back at the same address", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t), "--respawn");
  const first = await platform.next();
  process.kill(first.workerd_pid, "SIGKILL");
  const second = await platform.next();
  assert.equal(second.url, first.url);
  assert.equal(second.starts, 2);
  assert.notEqual(second.workerd_pid, first.workerd_pid);
  assert.equal((await health(second.url)).ok, true);
});

test("two platforms never share a state folder", { timeout: 30_000 }, async (t) => {
  const state = folder(t);
  await serve(t, "--state", state).next();
  const second = serve(t, "--state", state);
  assert.equal(await second.ended, 1);
  assert.match(second.errors(), /is in use by process \d+; stop it, or give another --state/);
});

test("a workerd that a killed platform left behind is ended before its state is used again", { timeout: 30_000 }, async (t) => {
  const state = folder(t);
  const first = serve(t, "--state", state);
  const { workerd_pid } = await first.next();
  first.child.kill("SIGKILL");
  await first.ended;
  const { url } = await serve(t, "--state", state).next();
  assert.equal(alive(workerd_pid), false);
  assert.equal((await health(url)).ok, true);
});

test("the secret is made once and kept with the state", { timeout: 30_000 }, async (t) => {
  const state = folder(t);
  const platform = serve(t, "--state", state);
  await platform.next();
  const secret = readFileSync(join(state, "secret"), "utf8");
  assert.match(secret, /^[0-9a-f]{64}$/);
  platform.child.kill("SIGTERM");
  await platform.ended;
  await serve(t, "--state", state).next();
  assert.equal(readFileSync(join(state, "secret"), "utf8"), secret);
});

test("a wrong option is refused with its name", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t), "--var", "novalue");
  assert.equal(await platform.ended, 2);
  assert.match(platform.errors(), /--var takes NAME=VALUE, not novalue/);
});

test("each life is killed at its own point, also while the cron trigger fires, and the last one lives", { timeout: 60_000 }, async (t) => {
  const points = ["repository.create.before#1", "repository.create.after#1", "registry.before-save#1", "registry.saved#1"];
  const kills = points.flatMap((point) => ["--kill-at", point]);
  const platform = serve(t, "--state", folder(t), "--secret", SECRET, "--respawn", "--tick", "1", ...kills);
  const { url } = await platform.next();
  let starts = 1;
  const lives = (async () => {
    while (starts <= points.length) ({ starts } = await platform.next());
  })();
  const statuses = [];
  for (let n = 0; starts <= points.length; n += 1) {
    const status = await newRepo(url, `r${n}`).catch(() => "lost");
    statuses.push(status);
    if (status === "lost") await new Promise((done) => setTimeout(done, 20));
  }
  await lives;
  assert.equal(await newRepo(url, "last"), 200);
  const died = platform.errors().split("\n").filter((line) => line.startsWith("POINT "));
  assert.deepEqual(died, points.map((point) => `POINT ${point.split("#")[0]}`));
});

test("--help prints the options, and an unknown one is refused with them", { timeout: 30_000 }, () => {
  const run = (...args) => spawnSync(process.execPath, [join(ROOT, "scripts/serve.mjs"), ...args], { encoding: "utf8" });
  const help = run("--help");
  assert.deepEqual([help.status, help.stderr], [0, ""]);
  for (const args of [["--bogus"], ["extra"], ["--port", "x"], ["--var", "x"]]) {
    const refused = run(...args);
    assert.deepEqual([refused.status, refused.stdout], [2, ""], args.join(" "));
    assert.ok(refused.stderr.startsWith("serve: ") && refused.stderr.includes(help.stdout), refused.stderr);
  }
});
