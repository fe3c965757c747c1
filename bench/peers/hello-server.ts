/** Bare servers, each in a process of its own, like the gateway. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

class BareServer {
  readonly port: number;
  readonly #process: ChildProcess;

  constructor(process: ChildProcess, port: number) {
    this.#process = process;
    this.port = port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  stop(): void {
    this.#process.stdin?.end();
  }
}

/** @param file a file of this folder that prints its port and exits when its standard input ends */
async function startBare(file: string): Promise<BareServer> {
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, file)], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit").then(() => Promise.reject(new Error(`${file} could not be started`)));
  const [port] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  ended.catch(() => {});
  return new BareServer(child, Number(port.toString()));
}

/** `hello.ts`. */
export const HelloServer = { start: (): Promise<BareServer> => startBare("hello.ts") };
export type HelloServer = BareServer;

/** `ws-echo.ts`. */
export const startEchoServer = (): Promise<BareServer> => startBare("ws-echo.ts");
