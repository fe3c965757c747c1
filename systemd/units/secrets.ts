/** Takes the secrets of an installation into root's hands: systemd gives each unit its own. */
import { chmodSync, chownSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

const forEverybody = 0o004;

/** Makes root the only reader of all that is not for everybody; earlier versions and `npm start` let the accounts read their own. @param folder that of the secrets, which is root's */
export function takeSecrets(folder: string): void {
  for (const path of readdirSync(folder).map((name) => join(folder, name))) {
    const found = lstatSync(path);
    if (!found.isFile() || (found.mode & forEverybody) !== 0) continue;
    chownSync(path, 0, 0);
    chmodSync(path, 0o600);
  }
}
