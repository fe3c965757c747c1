/** Runs `sandgate` as a separate process, with pipes or in a real pseudo-terminal. */
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type IPty, spawn } from "@lydell/node-pty";
import { execa } from "execa";
import { until } from "./until.ts";

export interface Outcome {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  /** Environment variables in addition to PATH and HOME. */
  readonly env?: Record<string, string>;
  readonly input?: string | Uint8Array;
}

export class Cli {
  /** Its working directory and home. */
  readonly folder = mkdtempSync(join(tmpdir(), "sandgate-cli-"));
  /** As npm makes it for a package's command. */
  readonly path = join(this.folder, "sandgate");
  readonly #access: Record<string, string>;

  constructor({ url, apiKey }: { url: string; apiKey: string }) {
    this.#access = { SANDGATE_URL: url, SANDGATE_API_KEY: apiKey };
    symlinkSync(join(process.cwd(), "systemd/sandgate.mjs"), this.path);
  }

  /** Runs it with the key in its environment. */
  run(...args: string[]): Promise<Outcome> {
    return this.runWith({}, ...args);
  }

  /** Runs it, expects success, and returns its output. @throws {Error} with its messages */
  async done(...args: string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run(...args);
    if (exitCode !== 0) throw new Error(`sandgate ${args.join(" ")} ended with ${exitCode}: ${stderr}`);
    return stdout;
  }

  async json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await this.done(...args, "--json")) as T;
  }

  async runWith({ env = {}, input }: RunOptions, ...args: string[]): Promise<Outcome> {
    const how = { cwd: this.folder, env: { ...this.environment, ...env }, extendEnv: false, reject: false } as const;
    const { exitCode, stdout, stderr } = await execa(this.path, args, input === undefined ? { ...how, stdin: "ignore" } : { ...how, input });
    return { exitCode, stdout, stderr };
  }

  get environment(): Record<string, string> {
    return { PATH: process.env.PATH ?? "", HOME: this.folder, ...this.#access };
  }

  /** Runs any program in its own terminal. */
  terminal(program: string, args: string[], env: Record<string, string> = {}): CliTerminal {
    const how = { cwd: this.folder, env: { ...this.environment, TERM: "xterm", ...env }, cols: 90, rows: 30, name: "xterm" };
    return new CliTerminal(spawn(program, args, how));
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: this is what programs send
const questions = /\u001b(?:\[>?0?c|\[[56]n|\[\?\d+\$p|P\$q q\u001b\\|\]1[01];\?(?:\u0007|\u001b\\))/g;

/** xterm's answers. */
function replyTo(question: string): string {
  if (question.endsWith("6n")) return "\u001b[2;2R";
  if (question.endsWith("5n")) return "\u001b[0n";
  if (question.endsWith("$p")) return question.replace("$p", ";2$y");
  if (question.startsWith("\u001bP")) return "\u001bP1$r2 q\u001b\\";
  if (question.endsWith("c")) return question.includes(">") ? "\u001b[>41;354;0c" : "\u001b[?1;2c";
  return `${question.slice(0, 5)}rgb:1e1e/1e1e/1e1e\u001b\\`;
}

export class CliTerminal {
  readonly #pty: IPty;
  /** Everything that was printed, including control sequences. */
  shown = "";
  exitCode: number | undefined;
  /** How many questions it has answered. */
  answered = 0;

  constructor(pty: IPty) {
    this.#pty = pty;
    pty.onData((data) => {
      this.shown += data;
    });
    pty.onExit(({ exitCode }) => {
      this.exitCode = exitCode;
    });
  }

  type(text: string): void {
    this.#pty.write(text);
  }

  /** From now on answers queries as a terminal does, with the delay of a remote one. Returns the queries. */
  answering(lateMs: number): string[] {
    const asked: string[] = [];
    let seen = this.shown.length;
    this.#pty.onData(() => {
      const from = seen;
      for (const { 0: question, index } of this.shown.slice(from).matchAll(questions)) {
        asked.push(question);
        seen = from + index + question.length;
        setTimeout(() => {
          if (this.exitCode === undefined) this.type(replyTo(question));
          this.answered++;
        }, lateMs);
      }
    });
    return asked;
  }

  resize(cols: number, rows: number): void {
    this.#pty.resize(cols, rows);
  }

  kill(signal: string): void {
    if (this.exitCode === undefined) this.#pty.kill(signal);
  }

  [Symbol.dispose](): void {
    this.kill("SIGKILL");
  }

  /** Resolves when this text was printed after `from`; returns the offset of its end. */
  async sees(pattern: RegExp | string, from = 0): Promise<number> {
    const find = (): number | undefined => {
      const rest = this.shown.slice(from);
      if (typeof pattern === "string") return rest.includes(pattern) ? from + rest.indexOf(pattern) + pattern.length : undefined;
      const match = pattern.exec(rest);
      return match ? from + match.index + match[0].length : undefined;
    };
    return until(`${pattern} is shown`, find).catch((error: unknown) => {
      throw new Error(`${error}; shown was ${JSON.stringify(this.shown.slice(-2_000))}`);
    });
  }

  /** Resolves with the exit code. */
  async ended(): Promise<number> {
    return until("the program in the terminal has ended", () => this.exitCode).catch((error: unknown) => {
      throw new Error(`${error}; shown was ${JSON.stringify(this.shown.slice(-2_000))}`);
    });
  }
}
