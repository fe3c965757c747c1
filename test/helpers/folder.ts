/** Temporary folders that are removed with their test. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./until.ts";

export interface TemporaryFolder extends Disposable {
  readonly path: string;
}

/** Removes a folder in which programs that are ending may still write, such as Podman and its monitors. */
export async function removeAbandoned(path: string): Promise<void> {
  await until(`${path} is gone`, () => {
    rmSync(path, { recursive: true, force: true });
    return true;
  });
}

/** An empty folder. @param mode its permissions; only its owner has access if absent */
export function temporaryFolder(name: string, mode = 0o700, parent = tmpdir()): TemporaryFolder {
  const path = mkdtempSync(join(parent, `sandgate-${name}-`));
  chmodSync(path, mode);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
