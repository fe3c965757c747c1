/**
 * A small process that starts programs for the worker. To start one, Node forks the whole process, during which it does
 * nothing else: milliseconds, and the more of them the more memory it has.
 */
import { type RunResult, type RunSettings, runProgram } from "./run-program.ts";

export interface LaunchRequest {
  readonly id: number;
  readonly file: string;
  readonly args: readonly string[];
  readonly settings: RunSettings;
}

export interface LaunchReply {
  readonly id: number;
  readonly result: RunResult;
}

// The worker decides when it needs no more programs, for its shutdown takes some.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
process.on("disconnect", () => process.exit());
process.on("message", ({ id, file, args, settings }: LaunchRequest) => {
  void runProgram(file, args, settings).then((result) => {
    const reply: LaunchReply = { id, result };
    // The worker is gone when it cannot be told.
    process.send?.(reply, () => {});
  });
});
