/**
 * Trusted paths: only this user and root decide where they lead, so nobody can redirect what root does through one.
 * Plain JavaScript for Node 18 and later, because install.mjs asks before anything is installed.
 */
import { lstatSync, mkdirSync, readlinkSync } from "node:fs";
import { join, resolve, sep } from "node:path";

const linksMax = 40; // as the kernel has it
const writableBy = { group: 0o020, others: 0o002 };
const sticky = 0o1000;

/** A path whose target a less trusted user can change. */
export class UntrustedPath extends Error {
  name = "UntrustedPath";

  /**
   * @param {string} path the folder, link or file that the user can change
   * @param {number} uid its owner
   * @param {string} reason
   */
  constructor(path, uid, reason) {
    super(
      `${path} ${reason}, so others could gain the rights of ${process.geteuid() === 0 ? "root" : "this user"}. Correct its owner and mode, or choose another folder.`,
    );
    this.path = path;
    this.uid = uid;
  }
}

/**
 * Walks from the root of the file system to the end of `path`, following links, and checks at every step that only trusted users
 * decide where the next one leads. The result stays valid, because nobody else can change it. Only we can create what is missing.
 *
 * @param {string} path
 * @param {{ make?: number, owner?: { uid: number, gid: number } }} [options] `make` is the mode of folders that are created if
 *   missing; `owner` is trusted as well, with the group of the same number
 * @returns {string} the path without links
 * @throws {UntrustedPath} naming what another user can change
 */
export function trustedPath(path, { make, owner } = {}) {
  let real = "/";
  let links = 0;
  const rest = namesOf(resolve(path));
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = join(real, name);
    if (make !== undefined) makeIfMissing(next, make);
    const found = lstatSync(next, { throwIfNoEntry: false });
    if (!found) return join(next, ...rest);
    check(next, found, owner);
    if (!found.isSymbolicLink()) real = next;
    else {
      if (++links > linksMax) throw new Error(`${path} leads over too many links`);
      rest.unshift(...namesOf(resolve(real, readlinkSync(next))));
      real = "/";
    }
  }
  return real;
}

/** Whether a user may change what root relies on: root, the user that runs this, and the user who became root with sudo. */
export function isTrusted(uid) {
  return uid === 0 || uid === process.geteuid?.() || uid === sudoId("SUDO_UID");
}

/**
 * @param {string} path
 * @param {import("node:fs").Stats} found
 * @param {{ uid: number, gid: number } | undefined} owner
 */
function check(path, found, owner) {
  const { uid, gid, mode } = found;
  if (!isTrusted(uid) && uid !== owner?.uid) throw new UntrustedPath(path, uid, `belongs to user ${uid}`);
  // The mode of a link means nothing, and in a sticky folder such as /tmp others cannot replace our files.
  if (found.isSymbolicLink() || (found.isDirectory() && mode & sticky)) return;
  if (mode & writableBy.others) throw new UntrustedPath(path, uid, "can be written by every user");
  if (mode & writableBy.group && !isOwnGroup(gid) && !(gid === owner?.gid && gid === owner.uid))
    throw new UntrustedPath(path, uid, `can be written by the group ${gid}`);
}

const isOwnGroup = (gid) => gid === 0 || gid === process.getegid() || gid === sudoId("SUDO_GID");

/** sudo sets this variable; nobody else controls root's environment. */
function sudoId(name) {
  return process.geteuid() === 0 && /^\d+$/.test(process.env[name] ?? "") ? Number(process.env[name]) : undefined;
}

function makeIfMissing(path, mode) {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (error.code !== "EEXIST" && !lstatSync(path, { throwIfNoEntry: false })) throw error;
  }
}

const namesOf = (path) => path.split(sep).filter((name) => name !== "");
