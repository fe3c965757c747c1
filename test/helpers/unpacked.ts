/** Programs of Debian that tests use without installing them, which would start their services. */
import { existsSync, mkdtempSync, renameSync } from "node:fs";
import { join } from "node:path";
import { Terminal } from "../../systemd/base/terminal.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { aptUnpack, aptUpdate, hasCandidates } from "../../systemd/setup/apt.ts";
import { preparedInstance } from "./prepare.ts";

/** Downloads a package once for this machine. @returns the folder with its files */
export async function unpackedPackage(name: string): Promise<string> {
  const folder = join((await preparedInstance()).paths.data, name);
  if (existsSync(folder)) return folder;
  const partial = mkdtempSync(`${folder}-`);
  const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);
  if (!(await hasCandidates([name]))) await aptUpdate(administrator, { say: () => {} });
  await aptUnpack([name], partial);
  renameSync(partial, folder);
  return folder;
}
