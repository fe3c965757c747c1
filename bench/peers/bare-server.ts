/** Bare servers, each in a process of its own, like the gateway. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export interface BareServer {
  readonly port: number;
  stop(): void;
}

/** @param file a file of this folder that prints its port and exits when its standard input ends */
export async function startBareServer(file: "hello.ts" | "ws-echo.ts"): Promise<BareServer> {
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, file)], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit").then(() => Promise.reject(new Error(`${file} could not be started`)));
  const [port] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  ended.catch(() => {});
  return { port: Number(port.toString()), stop: () => child.stdin.end() };
}
