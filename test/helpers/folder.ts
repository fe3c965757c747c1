/** Folders that are gone with the test that made them. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryFolder extends Disposable {
  readonly path: string;
}

/** An empty folder. @param mode who can look into it; only its maker when absent. */
export function temporaryFolder(name: string, mode = 0o700, parent = tmpdir()): TemporaryFolder {
  const path = mkdtempSync(join(parent, `sandgate-${name}-`));
  chmodSync(path, mode);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
