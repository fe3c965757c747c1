/** Workloads: what a load consists of. Each is a small file, JSON or TypeScript, that is checked against the schema below. */
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { env } from "node:process";
import { pathToFileURL } from "node:url";
import Type, { type Static } from "typebox";
import { messageOf, UsageError } from "../../shared/cli/failures.ts";
import { CreateBody } from "../../shared/schemas/sandboxes.ts";
import { inputChecker } from "../../shared/schemas/validate.ts";
import { nearest } from "../../shared/util/nearest.ts";

const whole = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });
const command = Type.String({ minLength: 1, maxLength: 65_536, takes: "a command line for /bin/sh" });
const path = Type.String({ pattern: "^/", takes: "an absolute path in the sandbox" });
const title = Type.String({ pattern: "^[^\\s,:][^,:]{0,39}$", takes: "a name of 1 to 40 characters without , and :" });
const bytesMax = 1_073_741_824;
const timeoutMaxS = 3_600;

/** What one arrival does. Beside `name`, `weight` and `timeoutS`, exactly one action. */
const Step = Type.Object({
  /** The row of the report. */
  name: title,
  /** How often it is chosen beside the other steps; 1 when absent. */
  weight: Type.Optional(Type.Number({ minimum: 0.001, maximum: 1_000 })),
  /** Seconds after which the action counts as failed; 60 when absent. */
  timeoutS: Type.Optional(whole(1, timeoutMaxS)),
  /** Runs a command and waits for its end. Failed unless it exits with 0, like all commands here. */
  execute: Type.Optional(command),
  /** Runs a command and reads its output as it comes. */
  stream: Type.Optional(command),
  /** A command in a terminal: `keys` keystrokes, each typed when something has come back for the one before. Without keys it is read to its end. */
  session: Type.Optional(Type.Object({ command, keys: Type.Optional(whole(1, 10_000)) })),
  /** Writes a file of random bytes. */
  upload: Type.Optional(Type.Object({ path, bytes: whole(1, bytesMax) })),
  /** Reads a file. */
  download: Type.Optional(Type.Object({ path })),
  /** A sandbox of its own: counts until its first command has answered. Then it is deleted. */
  create: Type.Optional(Type.Object({ run: command })),
  /** A call that the gateway answers by itself, or with the worker's figures. */
  read: Type.Optional(Type.Enum(["list", "info", "status"], { takes: '"list", "info" or "status"' })),
});
export type Step = Static<typeof Step>;

/** Arrivals by number instead of by rate. */
const Phase = Type.Object({
  name: title,
  count: whole(1, 100_000),
  /** Milliseconds between two starts; 0 starts all at once. When absent, each starts when the one before has ended. */
  everyMs: Type.Optional(whole(0, 3_600_000)),
});
export type Phase = Static<typeof Phase>;

const { image, resources, env_vars, network, isolation } = CreateBody.properties;

const Workload = Type.Object({
  /** What it is like, in one line. */
  about: Type.String({ minLength: 1, maxLength: 200 }),
  /** How many sandboxes are prepared for the steps that need one; 1 when absent. Each arrival takes one of them at random. */
  sandboxes: Type.Optional(whole(1, 1_000)),
  /** What every sandbox gets, as in the API. */
  sandbox: Type.Optional(Type.Object({ image: Type.Optional(image), resources, env_vars, network, isolation })),
  /** A command that runs once in every prepared sandbox before the load begins. */
  setup: Type.Optional(command),
  /** Phases one after the other. When absent, arrivals come at `--rate` for `--duration`. */
  phases: Type.Optional(Type.Array(Phase, { minItems: 1, maxItems: 20, takes: "a list of 1 to 20 phases" })),
  steps: Type.Array(Step, { minItems: 1, maxItems: 50, takes: "a list of 1 to 50 steps" }),
});
export type Workload = Static<typeof Workload>;

const { check, schema } = inputChecker(Workload);

export const actions = ["execute", "stream", "session", "upload", "download", "create", "read"] as const;
export type ActionName = (typeof actions)[number];

/** The actions of a step; exactly one in a workload that was checked. */
export const actionsOf = (step: Step): ActionName[] => actions.filter((name) => step[name] !== undefined);

/** Whether the step uses one of the prepared sandboxes. */
export const needsSandbox = (step: Step): boolean => step.create === undefined && step.read !== "list";

const profilesDir = join(import.meta.dirname, "workloads");

/** The workloads that come with the bench, or were added beside them. */
export function profileNames(): string[] {
  return readdirSync(profilesDir)
    .map((file) => basename(file, extname(file)))
    .sort();
}

/** A path as the user typed it, which npm may have been started from another folder with. */
export const userPath = (path: string): string => resolve(env.INIT_CWD ?? ".", path);

/** Reads the workload of this name, or in this file. @throws {UsageError} with the place of what is wrong */
export async function readWorkload(nameOrFile: string): Promise<{ readonly name: string; readonly workload: Workload }> {
  const isName = /^[\w-]+$/.test(nameOrFile);
  const file = isName ? profileFile(nameOrFile) : userPath(nameOrFile);
  const name = basename(file, extname(file));
  return { name, workload: checkWorkload(await read(file, nameOrFile), nameOrFile) };
}

function profileFile(name: string): string {
  const file = [".ts", ".json"].map((ending) => join(profilesDir, name + ending)).find(existsSync);
  if (file) return file;
  const meant = nearest(name, profileNames());
  throw new UsageError(
    `there is no workload ${name}${meant ? `, only ${meant}` : ""}; there are ${profileNames().join(", ")}, or give a file such as ./mine.json`,
  );
}

async function read(file: string, shown: string): Promise<unknown> {
  const ending = extname(file);
  try {
    if (ending === ".json") return JSON.parse(await readFile(file, "utf8"));
    if (/^\.m?[jt]s$/.test(ending)) return ((await import(pathToFileURL(file).href)) as { default?: unknown }).default;
  } catch (error) {
    throw new UsageError(`${shown}: ${messageOf(error)}${placeIn(error, file)}`);
  }
  throw new UsageError(`${shown}: a workload is a .json or .ts file`);
}

/** Where in a file an error was thrown, if its message does not tell. */
function placeIn(error: unknown, file: string): string {
  const line = error instanceof Error && !error.message.includes(file) ? error.stack?.split("\n").find((one) => one.includes(file)) : undefined;
  const place = line === undefined ? undefined : /:(\d+):(\d+)\)?$/.exec(line);
  return place ? ` (line ${place[1]}, column ${place[2]})` : "";
}

/** @param shown the name of the file in messages. @throws {UsageError} */
export function checkWorkload(value: unknown, shown: string): Workload {
  const fail = (message: string): never => {
    throw new UsageError(`${shown}: ${message}`);
  };
  if (value === undefined) fail("the file has no default export: export default { about, steps }");
  const workload = attemptCheck(value, fail);
  const names = new Set<string>();
  for (const [index, step] of workload.steps.entries()) {
    const given = actionsOf(step);
    const place = `steps[${index}] (${step.name})`;
    if (given.length !== 1) fail(`${place} must have exactly one of ${actions.join(", ")}${given.length > 0 ? `, not ${given.join(" and ")}` : ""}`);
    if (names.has(step.name)) fail(`${place}: another step has the same name`);
    names.add(step.name);
  }
  const phases = workload.phases?.map(({ name }) => name) ?? [];
  if (new Set(phases).size < phases.length) fail("two phases have the same name");
  return workload;
}

function attemptCheck(value: unknown, fail: (message: string) => never): Workload {
  try {
    return check(value);
  } catch (error) {
    const message = messageOf(error)
      .replace("the request", "the workload")
      .replace(/(?<=[a-z])\.(\d+)(?=[.\s]|$)/g, "[$1]");
    const unknown = /^Unknown field: (?:.*\.)?([^.]+)$/.exec(message)?.[1];
    const meant = unknown && nearest(unknown, fieldNames);
    return fail(`${message}${meant ? `; did you mean ${meant}?` : ""}`);
  }
}

const fieldNames = [schema, Step, Phase].flatMap(({ properties }) => Object.keys(properties));
