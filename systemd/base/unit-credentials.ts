/** How units of systemd get what is secret: files of root's in a folder of each, which systemd hands to the unit at its start. */
import { join } from "node:path";

/** What the names of all credentials begin with, by the units' `LoadCredential=`. */
const prefix = "sandgate";

/** The name of a credential, from that of its file. */
export const credentialName = (file: string): string => `${prefix}_${file}`;

/** Where systemd puts a credential of a unit, for programs that do not know `$CREDENTIALS_DIRECTORY`. */
export const credentialOf = (unit: string, file: string): string => join("/run/credentials", unit, credentialName(file));

/** The unit's own setting. @param folder with the files */
export const loadCredential = (folder: string): string => `${prefix}:${folder}`;
