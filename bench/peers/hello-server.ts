/** `hello.ts` as a process of its own, as the gateway is one. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export class HelloServer {
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess, port: number) {
    this.#process = process;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<HelloServer> {
    const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "hello.ts")], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "exit").then(() => Promise.reject(new Error("the bare HTTP server could not be started")));
    const [port] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
    ended.catch(() => {});
    return new HelloServer(child, Number(port.toString()));
  }

  stop(): void {
    this.#process.stdin?.end();
  }
}
