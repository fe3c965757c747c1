/** Programs of this folder, each in a process of its own, like the gateway. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export interface Peer {
  readonly pid: number;
  /** What it printed when it was ready. */
  readonly said: string;
  stop(): void;
}

/**
 * Resolves when the program is ready.
 *
 * @param file prints one line when it is ready, and exits when its standard input ends
 */
export async function startPeer(file: "hello.ts" | "ws-echo.ts" | "fleet.ts", ...args: readonly string[]): Promise<Peer> {
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, file), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit").then(() => Promise.reject(new Error(`${file} could not be started`)));
  const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  ended.catch(() => {});
  return { pid: child.pid as number, said: line.toString().trim(), stop: () => child.stdin.end() };
}

export interface BareServer extends Peer {
  readonly port: number;
}

/** @param file prints its port */
export async function startBareServer(file: "hello.ts" | "ws-echo.ts"): Promise<BareServer> {
  const peer = await startPeer(file);
  return { ...peer, port: Number(peer.said) };
}
