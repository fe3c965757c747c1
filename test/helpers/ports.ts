/** Ports for tests: below those that the kernel gives to connections, so that one whose process is killed is still free when that starts again. */
import { randomInt } from "node:crypto";
import { checkPortIsFree } from "../../systemd/supervisor/ports.ts";

/** Above 10080, the last of those that `fetch` refuses as another protocol's. */
const first = 10_100;
/** Each process of tests has some of its own, as far as process ids are unlike. */
const perProcess = 100;
const processes = 200;
const tries = 50;
let taken = randomInt(perProcess);

/** A port of 127.0.0.1 that nobody listens on, and that no other call in this process is given soon. */
export async function testPort(): Promise<number> {
  for (let tried = 0; tried < tries; tried++) {
    const port = first + (process.pid % processes) * perProcess + (taken++ % perProcess);
    if (await isFree(port)) return port;
  }
  throw new Error("no port is free");
}

function isFree(port: number): Promise<boolean> {
  return checkPortIsFree("127.0.0.1", port, { part: "a test", setting: "nothing" }).then(
    () => true,
    () => false,
  );
}
