/** `systemd/install`: puts the program and its services onto this machine, newer ones in place of older ones, or takes them off. */
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { describeSettings, loadConfig, settings } from "../../shared/config.ts";
import { appDir } from "../../shared/programs.mjs";
import { until } from "../../shared/waiting.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import { type PartName, pathsOf, runsHere } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";
import { searchPath } from "../base/search-path.mjs";
import { type Progress, Terminal } from "../base/terminal.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import { readNode } from "../cluster/identity.ts";
import { addressTowards } from "../fleet/address.ts";
import { type Choice, choiceOf, refuseAlone, refuseOtherChoice } from "../fleet/joining.ts";
import { copyProgram } from "../setup/app-directory.ts";
import { hasSystemd } from "../setup/programs.ts";
import { makeSupervisorFolder } from "../supervisor/alone.ts";
import { urlOf } from "../supervisor/banner.ts";
import { parsePinoLine } from "../supervisor/log-line.ts";
import { environmentFile } from "./given.ts";
import {
  commands,
  commandsDir,
  type DeclarationKind,
  declarationFile,
  declarationKinds,
  declarations,
  programDir,
  settingsDir,
  settingsFile,
  settingsOf,
  type Task,
  unitNames,
  unitsDir,
} from "./places.ts";
import { removal } from "./removal.ts";

const readableMode = 0o644;
const commandMode = 0o755;
/** The worker runs in a group of its account's, so its unit is not what finds its log. */
const logs = ["setup", "nats", "cluster", "worker", "gateway", "helper"].map((part) => `-t sandgate-${part}`).join(" ");
const unitOf: Readonly<Record<PartName, string>> = {
  nats: "sandgate-nats.service",
  worker: "sandgate-worker.service",
  gateway: "sandgate-gateway@1.service",
};
const readyMs = 120_000;
const linesShown = 5;
const saidMs = 2_000;
const usage = `sudo systemd/install [OPTIONS]

Installs Sandgate as services of systemd, or replaces an older version: the program in ${programDir},
the settings in ${settingsFile}, the data in /var/lib/sandgate. Running sandboxes go on.

  --role ROLE   what this machine runs: all (the default), nats, gateway or worker
  --join TOKEN  run a part of another machine's installation; sandgate-admin join-token prints the command there.
                With - the token is read from standard input, so that it is in no list of processes
  --dry-run     say what would be done, and do nothing
  --remove      end all sandboxes, stop and remove the services and the program; settings and data stay
  --purge       with --remove: the settings, the data and the accounts as well
  -h, --help    show this text`;

/** The port of NATS stays the same over restarts, and is not that of a server which the machine may have already. */
const settingsHead = `# Settings of Sandgate, one NAME=value in a line. After a change: systemctl restart sandgate-setup.service
SANDGATE_NATS_PORT=4223
`;

/** Set above, or named by the units. */
const notOffered = ["SANDGATE_NATS_PORT", "SANDGATE_USER", "SANDGATE_DATA_DIR"];

/** What was chosen, then all other settings, commented out, for the operator to choose from. */
const settingsText = ({ settings: chosen }: Choice): string =>
  settingsHead +
  Object.entries(chosen)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("") +
  describeSettings()
    .filter(({ name, about }) => !notOffered.includes(name) && !(name in chosen) && !about.startsWith("Set by the start itself"))
    .map(({ name, fallback, about }) => `\n# ${about}\n#${name}=${fallback}\n`)
    .join("");

const commandText = (args: readonly string[]): string =>
  ["#!/bin/sh", `exec ${programDir}/node_modules/.bin/node ${programDir}/build/shared-cli-main.js ${args.map((each) => `${each} `).join("")}"$@"`, ""].join(
    "\n",
  );

function fileTask(path: string, text: string, mode: number): Task {
  return {
    title: "Writing",
    object: path,
    isDone: async () => existsSync(path) && (await readIfThere(path)) === text,
    work: () => replaceFile(path, text, { mode }),
  };
}

function installation(choice: Choice): Task[] {
  const folder = pathsOf(loadConfig({})).supervisor;
  const systemctl = (...args: string[]): Promise<unknown> => run(["systemctl", ...args]);
  const units = unitNames().map((name) => fileTask(join(unitsDir, name), readFileSync(join(appDir, "systemd/units", name), "utf8"), readableMode));
  return [
    { title: "Copying the program", object: programDir, isDone: () => appDir === programDir, work: () => copyProgram(programDir) },
    { title: "Making the folder of the settings", object: settingsDir, isDone: () => existsSync(settingsDir), work: () => mkdir(settingsDir, { mode: 0o755 }) },
    ...(choice.files.some(({ path }) => dirname(path) === folder)
      ? [{ title: "Making the folder", object: folder, isDone: () => existsSync(folder), work: async () => makeSupervisorFolder(folder) }]
      : []),
    ...choice.files.map(({ path, text, mode }) => fileTask(path, text, mode)),
    // An operator may put secrets there.
    {
      ...fileTask(settingsFile, settingsText(choice), 0o600),
      title: "Writing the settings, all of them with their defaults",
      isDone: () => existsSync(settingsFile),
    },
    ...units,
    ...Object.entries(commands).map(([name, args]) => fileTask(join(commandsDir, name), commandText(args), commandMode)),
    ...declarationKinds.flatMap(declared),
    { title: "Loading the units", object: unitsDir, work: () => systemctl("daemon-reload") },
    { title: "Enabling at every boot", object: "sandgate.target", work: () => systemctl("enable", "--quiet", "sandgate.target") },
    // What depends on it is restarted with it. Sandboxes go on.
    { title: "Preparing the machine and starting the services", object: "sandgate.target", work: (progress) => start(systemctl, progress) },
  ];
}

/** A file for another program of systemd, carried out at once. An older kernel need not know what it is to be set to. */
function declared(kind: DeclarationKind): Task[] {
  const file = declarationFile(kind);
  const text = readFileSync(join(appDir, "systemd/units", `sandgate.${kind}`), "utf8");
  const writing = fileTask(file, text, readableMode);
  const work = async (progress: Progress): Promise<void> => {
    // Not every machine has a folder for the administrator's own files.
    await mkdir(dirname(file), { recursive: true });
    await writing.work(progress);
  };
  return [
    { ...writing, work },
    { title: "Carrying out", object: file, work: () => succeeds([...declarations[kind], file]) },
  ];
}

async function start(systemctl: (...args: string[]) => Promise<unknown>, { say }: Progress): Promise<void> {
  const log = (...options: string[]): Promise<string> => run(["journalctl", "-t", "sandgate-setup", "--output=cat", "--no-pager", ...options]).catch(() => "");
  const failed = async (error: unknown): Promise<never> => {
    throw new StartFailure(`The machine could not be prepared: ${messageOf(error)}\n${await log("--lines=15")}`);
  };
  const shown = setInterval(() => void log("--lines=1", "--since=-5s").then((line) => line && say(line.trim())), saidMs);
  try {
    await systemctl("restart", "sandgate-setup.service").catch(failed);
  } finally {
    clearInterval(shown);
  }
  const config = loadConfig(await settingsOf());
  // A NATS server that is to be a node of a cluster may have to wait for others.
  const runs = (part: PartName): boolean => runsHere(config, part) && (part !== "nats" || existsSync(environmentFile(part)));
  const units = Object.entries(unitOf).flatMap(([part, unit]) => (runs(part as PartName) ? [unit] : []));
  // What failed before says nothing about this start.
  await succeeds(["systemctl", "reset-failed", ...units]);
  // Units are ready when their parts say so, which they may never do.
  await systemctl("start", "--no-block", "sandgate.target");
  // systemctl takes several units, and is content with one that is active.
  const areActive = async (): Promise<boolean> =>
    !(await Promise.all(units.map((unit) => succeeds(["systemctl", "is-active", "--quiet", unit])))).includes(false);
  const haveFailed = (): Promise<boolean> => succeeds(["systemctl", "is-failed", "--quiet", ...units]);
  await until(async () => (await areActive()) || (await haveFailed()), { timeoutMs: readyMs, pollMs: 200 });
  if (!(await areActive())) throw new StartFailure(`Not all services are ready; see: systemctl status 'sandgate*', journalctl ${logs}${await complaints()}`);
}

/** What the parts have complained of last, in lines. */
async function complaints(): Promise<string> {
  const said = await run(["journalctl", "-t", "sandgate-worker", "-t", "sandgate-gateway", "--output=cat", "--no-pager", "--since=-3min"]).catch(() => "");
  const found = said
    .split("\n")
    .map(parsePinoLine)
    .filter(({ severity }) => severity === "warn" || severity === "error");
  return found
    .slice(-linesShown)
    .map(({ text }) => `\n  ${text}`)
    .join("");
}

/** @throws {StartFailure} if it does not fit what this machine is */
async function chosen(options: { readonly role?: string; readonly join?: string }): Promise<Choice> {
  const choice = choiceOf({ ...options, ...(options.join === "-" ? { join: await text(process.stdin) } : {}) });
  const present = existsSync(settingsFile) ? await settingsOf() : undefined;
  if (present) refuseOtherChoice(choice, present);
  refuseAlone({ ...choice.settings, ...present });
  if (!choice.node) return choice;
  await refuseOtherNode(choice.node.id);
  return present ? choice : { ...choice, settings: { ...choice.settings, [settings.natsHost.name]: await addressTowards(choice.node.servers) } };
}

/** @throws {StartFailure} if the machine is another node already */
async function refuseOtherNode(id: string): Promise<void> {
  const known = await readNode({ paths: pathsOf(loadConfig({})) });
  if (known && known.id !== id)
    throw new StartFailure(`This machine is ${known.id} already. To make something else of it, remove it first: sudo systemd/install --remove --purge`);
}

async function tellReady(terminal: Terminal): Promise<void> {
  const config = loadConfig(await settingsOf());
  const key = (await readIfThere(pathsOf(config).apiKey))?.trim() ?? "";
  const [hasGateway, hasNats] = (["gateway", "nats"] as const).map((part) => runsHere(config, part));
  terminal.line();
  if (hasGateway) terminal.line(`Sandgate runs on ${urlOf(config, config.port)}, and at every boot. API key of the operator: ${key}`);
  else if (hasNats && existsSync(environmentFile("nats")))
    terminal.line("The NATS server runs, and at every boot. Let other machines join it: sudo sandgate-admin join-token --help");
  else if (!hasNats) terminal.line(`The worker ${config.workerId} runs, and at every boot.`);
  if (hasNats && !existsSync(environmentFile("nats")))
    terminal.line("Its NATS server waits to be a node of a cluster. Once all are installed, on the first machine: sudo sandgate-admin cluster form");
  terminal.line(`Settings: ${settingsFile}. Logs: journalctl ${logs}. Services: systemctl status 'sandgate*'.`);
}

async function main(terminal: Terminal): Promise<void> {
  const { values } = parseArgs({
    options: {
      ...{ role: { type: "string" }, join: { type: "string" } },
      ...{ "dry-run": { type: "boolean" }, remove: { type: "boolean" }, purge: { type: "boolean" }, help: { type: "boolean", short: "h" } },
    },
  });
  if (values.help) return console.log(usage);
  if (values.purge && !values.remove) throw new StartFailure("--purge goes with --remove");
  if (!hasSystemd()) throw new StartFailure("This machine is not run by systemd; npm start runs Sandgate without it.");
  const isDry = values["dry-run"] === true;
  if ((!isDry || values.remove) && process.getuid?.() !== 0) throw new StartFailure("Only root can do this: sudo systemd/install");
  for (const { title, object, isDone, work } of values.remove ? await removal(values.purge === true) : installation(await chosen(values))) {
    if (await isDone?.()) continue;
    if (isDry) terminal.line(`· ${title}: ${object}`);
    else await terminal.task(title, object, work);
  }
  if (!isDry && !values.remove) await tellReady(terminal);
}

process.env.PATH = searchPath;
const terminal = new Terminal(process.stdout);
try {
  await main(terminal);
  process.exit(0);
} catch (error) {
  const isUsage = (error as NodeJS.ErrnoException)?.code?.startsWith("ERR_PARSE_ARGS");
  terminal.bad(error instanceof StartFailure || isUsage ? messageOf(error) : String(error instanceof Error ? error.stack : error));
  process.exit(1);
}
