// Samples the memory of workerd's isolates through its inspector, until standard input ends.
//
//   node scripts/heap.mjs INSPECTOR_URL
//
// Prints {"heap_mib","buffers_mib","total_mib","samples"}: the highest values seen, every 100 ms.
// `backingStorageSize` counts WASM's linear memory and array buffers.
import WebSocket from "ws";

const EVERY_MS = 100;
const MIB = 1024 * 1024;

const peak = { heap_mib: 0, buffers_mib: 0, total_mib: 0, samples: 0 };

async function targets(url) {
  const base = new URL(url.replace(/^ws/, "http"));
  const list = await (await fetch(new URL("/json/list", base))).json();
  return list.map((target) => target.webSocketDebuggerUrl);
}

function sample(socket) {
  let id = 0;
  const sent = new Map();
  socket.on("message", (data) => {
    const message = JSON.parse(data);
    if (!sent.delete(message.id) || !message.result) return;
    const heap = message.result.usedSize / MIB;
    const buffers = (message.result.backingStorageSize ?? 0) / MIB;
    peak.heap_mib = Math.max(peak.heap_mib, heap);
    peak.buffers_mib = Math.max(peak.buffers_mib, buffers);
    peak.total_mib = Math.max(peak.total_mib, heap + buffers);
    peak.samples += 1;
  });
  return setInterval(() => {
    id += 1;
    sent.set(id, true);
    socket.send(JSON.stringify({ id, method: "Runtime.getHeapUsage" }));
  }, EVERY_MS);
}

const timers = [];
for (const url of await targets(process.argv[2])) {
  const socket = new WebSocket(url);
  socket.on("open", () => timers.push(sample(socket)));
  socket.on("error", (error) => console.error(`heap: ${error.message}`));
}
process.stdin.resume().on("end", () => {
  timers.forEach(clearInterval);
  console.log(JSON.stringify(peak));
  process.exit(0);
});
