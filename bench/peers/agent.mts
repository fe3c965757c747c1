/**
 * Runs programs and reports how long each took. Started once, as the worker's user inside Podman's namespace, so that timings
 * exclude entering the namespace. Reads and writes lines of JSON, see `client.ts`. Needs only Node.js, because it is copied to
 * a place where that user can read it.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

interface Task {
  readonly id: number;
  readonly argv: readonly string[];
}

const outputCharsMax = 256 * 1024;

function carryOut({ id, argv: [file = "", ...args] }: Task): void {
  const output = { stdout: "", stderr: "" };
  const report = (exitCode: number | null): void => {
    process.stdout.write(`${JSON.stringify({ id, ms: performance.now() - begunAtMs, exitCode, ...output })}\n`);
  };
  const begunAtMs = performance.now();
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] });
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      if (output[name].length < outputCharsMax) output[name] += text;
    });
  }
  child.once("error", (error) => {
    output.stderr += error.message;
  });
  child.once("close", report);
}

// Ctrl-C is sent to the whole process group. Running programs are finished, so that nothing incomplete stays behind.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
createInterface({ input: process.stdin }).on("line", (line) => carryOut(JSON.parse(line) as Task));
