/** Takes the services off this machine. */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { loadConfig } from "../../shared/config.ts";
import { StartFailure } from "../base/failure.ts";
import { pathsOf } from "../base/instance.ts";
import { succeeds } from "../base/run.ts";
import { Terminal } from "../base/terminal.ts";
import { findAccounts } from "../setup/account.ts";
import { createAdministrator } from "../setup/administrator.ts";
import { removeControlGroups } from "../setup/control-groups.ts";
import { removeUserManagerFile } from "../setup/user-manager.ts";
import { profileFile } from "../setup/user-namespaces.ts";
import { keepStartOut } from "../supervisor/alone.ts";
import { unmount } from "../volume/unmount.ts";
import { commands, commandsDir, declarationFile, declarationKinds, programDir, settingsDir, settingsOf, type Task, unitNames, unitsDir } from "./places.ts";
import { unprotectHost } from "./protection.ts";

/** @throws {StartFailure} when there is nothing to remove, or what there is belongs to an `npm start` that runs */
export async function removal(purge: boolean): Promise<Task[]> {
  const config = loadConfig(await settingsOf());
  const { volume, data, supervisor } = pathsOf(config);
  if (!purge && ![programDir, join(unitsDir, "sandgate.target")].some(existsSync)) throw new StartFailure("Sandgate is not installed as services here.");
  if (existsSync(supervisor)) (await keepStartOut(supervisor)).release();
  const accounts = await findAccounts(config).catch(() => undefined);
  const names = accounts ? Object.values(accounts).map(({ name }) => name) : [];
  const worker = accounts?.worker;
  const quietly = (...argv: string[]): Promise<unknown> => succeeds(argv, { cwd: "/" });
  return [
    {
      title: "Stopping the services",
      object: "sandgate.target",
      work: () =>
        quietly("systemctl", "stop", "sandgate.target", "sandgate-cluster.service", "sandgate-helper.socket", "sandgate-setup.service", "sandgate.slice"),
    },
    {
      title: "Ending all sandboxes",
      object: worker?.name ?? "",
      isDone: () => worker === undefined,
      work: async () => {
        if (!worker) return;
        await rm(join("/var/lib/systemd/linger", worker.name), { force: true });
        await quietly("systemctl", "stop", `user@${worker.uid}.service`);
        await quietly("systemctl", "stop", `user-runtime-dir@${worker.uid}.service`);
        await unprotectHost(worker);
        await removeUserManagerFile(worker);
        // Those of cgroup v1, which no service manager removes.
        await removeControlGroups(worker, createAdministrator(new Terminal(process.stdout), new AbortController().signal));
      },
    },
    { title: "Unmounting the volume", object: volume, isDone: () => Boolean(config.volume), work: () => unmount(volume) },
    {
      title: "Removing the units",
      object: unitsDir,
      work: async () => {
        await quietly("systemctl", "disable", "--quiet", "sandgate.target");
        // It stays when everything in it has ended.
        await quietly("systemctl", "stop", "sandgate.slice");
        for (const name of unitNames()) await rm(join(unitsDir, name), { force: true });
        await quietly("systemctl", "daemon-reload");
        await quietly("systemctl", "reset-failed", "sandgate*");
      },
    },
    {
      title: "Removing the program and its commands",
      object: programDir,
      work: async () => {
        for (const name of Object.keys(commands)) await rm(join(commandsDir, name), { force: true });
        for (const kind of declarationKinds) await rm(declarationFile(kind), { force: true });
        if (existsSync(profileFile)) await quietly("apparmor_parser", "--remove", profileFile);
        await rm(profileFile, { force: true });
        await rm(programDir, { recursive: true, force: true });
      },
    },
    ...(purge
      ? [
          {
            title: "Removing settings and data",
            object: `${settingsDir}, ${data}`,
            work: () => Promise.all([settingsDir, data].map((dir) => rm(dir, { recursive: true, force: true }))),
          },
          {
            title: "Removing the accounts",
            object: names.join(", "),
            isDone: () => names.length === 0,
            work: async () => {
              for (const name of names) await quietly("userdel", name);
            },
          },
        ]
      : []),
  ];
}
