/** The settings of who starts Sandgate, or works on an installation: the environment, and the file that it leads to. */
import { settingsFileOf, takeSettingsFile } from "../../shared/settings-file.ts";
import { trustedPath } from "./trusted-path.mjs";

/** Adds the settings of the file to the environment. @throws {ConfigError}; {UntrustedPath} where somebody else decides which file that is */
export function takeSettings(): void {
  trustedPath(settingsFileOf().path);
  takeSettingsFile();
}
