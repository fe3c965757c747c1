/** Runs the operators' commands as separate processes. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { buildDir, builtName } from "../../shared/programs.mjs";

export interface Outcome {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

const program = join(buildDir, builtName("shared/cli/main.ts"));
const withKey = ["--key-file", "operator-key"];

export class AdminCommand {
  readonly folder = mkdtempSync(join(tmpdir(), "sandgate-admin-"));
  readonly #url: string;
  readonly #link = join(this.folder, "sandgate-admin");

  constructor({ url, apiKey }: { url: string; apiKey: string }) {
    this.#url = url;
    // A link like npm makes for a package's command.
    symlinkSync(join(process.cwd(), "systemd/admin.mjs"), this.#link);
    writeFileSync(join(this.folder, "operator-key"), `${apiKey}\n`);
  }

  /** Runs the command with the operator's key in a file. */
  run(...args: string[]): Promise<Outcome> {
    return this.runWith({ SANDGATE_URL: this.#url }, ...withKey, ...args);
  }

  /** Starts a command, with the operator's key, that does not end by itself. The caller kills it. */
  start(...args: string[]) {
    return execa(process.execPath, [program, "admin", ...withKey, ...args], this.#options({ SANDGATE_URL: this.#url }));
  }

  /** Runs it with exactly these variables of the product, and without a terminal for prompts. */
  runWith(variables: Record<string, string>, ...args: string[]): Promise<Outcome> {
    return this.#execute(variables, process.execPath, [program, "admin", ...args]);
  }

  /** Runs `sandgate-admin`, which first sees to it that the command is built and spends most of the time on that. */
  launch(variables: Record<string, string>, ...args: string[]): Promise<Outcome> {
    return this.#execute(variables, this.#link, args);
  }

  async #execute(variables: Record<string, string>, file: string, args: string[]): Promise<Outcome> {
    const { exitCode, stdout, stderr } = await execa(file, args, this.#options(variables));
    return { exitCode, stdout, stderr };
  }

  #options(variables: Record<string, string>) {
    const { PATH = "", HOME = "" } = process.env;
    return { cwd: this.folder, env: { PATH, HOME, ...variables }, extendEnv: false, reject: false, stdin: "ignore" } as const;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
