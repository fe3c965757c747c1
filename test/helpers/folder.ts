/** Temporary folders that are removed with their test. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryFolder extends Disposable {
  readonly path: string;
}

/** An empty folder. @param mode its permissions; only its owner has access if absent */
export function temporaryFolder(name: string, mode = 0o700, parent = tmpdir()): TemporaryFolder {
  const path = mkdtempSync(join(parent, `sandgate-${name}-`));
  chmodSync(path, mode);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
