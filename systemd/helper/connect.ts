/** Serves the worker's connection with the rights of root: in this process if it has them, else in one that sudo starts for it. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { builtName } from "../../shared/programs.mjs";
import type { Paths } from "../base/instance.ts";
import { searchPath } from "../base/search-path.mjs";
import { argumentsOf } from "./arguments.ts";
import { serve } from "./serve.ts";
import type { Served } from "./verbs.ts";

export function serveWorker(connection: Duplex, served: Served, paths: Pick<Paths, "app">): void {
  if (process.getuid?.() === 0) serve(connection, connection, served);
  else relay(connection, ["sudo", "-n", "--", ...helperCommand(served, paths)]);
}

/** The helper as a process of its own. */
export function helperCommand(served: Served, { app }: Pick<Paths, "app">): string[] {
  const program = [join(app, "node_modules/.bin/node"), join(app, "build", builtName("systemd/helper/main.ts"))];
  return ["env", "-i", `PATH=${searchPath}`, ...program, ...argumentsOf(served)];
}

/** Passes everything on to a helper, which ends with the connection. */
export function relay(connection: Duplex, [file = "", ...args]: readonly string[]): void {
  // In a session of its own, because Ctrl-C in the terminal must not reach it before the worker has stopped.
  const helper = spawn(file, args, { cwd: "/", env: { PATH: searchPath }, stdio: ["pipe", "pipe", "ignore"], detached: true });
  const end = (): void => void connection.destroy();
  helper.once("error", end).once("exit", end);
  helper.stdin.on("error", end);
  connection.on("error", end).once("close", () => helper.stdin.end());
  connection.pipe(helper.stdin);
  helper.stdout.pipe(connection);
}
