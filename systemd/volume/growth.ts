/** How large the file of a volume may be: arithmetic only. */

const MiB = 1024 ** 2;
const GiB = 1024 ** 3;

/** A smaller volume could hold too little to be worth it. */
const firstBytesMin = 1 * GiB;
const firstBytesMax = 4 * GiB;
/** A step is a quarter of the volume, within these bounds: small enough for a small disk, large enough to be rare. */
const stepBytesMin = 1 * GiB;
const stepBytesMax = 32 * GiB;
/** With less than this, it is not worth growing. */
const usefulBytes = 64 * MiB;

/** The disk that holds the file. */
export interface Disk {
  readonly freeBytes: number;
  /** What must stay free. */
  readonly floorBytes: number;
}

/** A volume and its file, which is sparse: the disk has yet to give what is not allocated. */
export interface Size {
  readonly bytes: number;
  readonly allocatedBytes: number;
  readonly bytesMax: number;
}

/** The size of a new volume, or undefined if the disk has no room for one. */
export function firstSize(bytesMax: number, { freeBytes, floorBytes }: Disk): number | undefined {
  const bytes = wholeMiB(Math.min(firstBytesMax, bytesMax, freeBytes - floorBytes));
  return bytes >= firstBytesMin ? bytes : undefined;
}

/**
 * The next size of a volume, or what keeps it from growing: its setting, or the disk.
 *
 * @param moreBytes what it is to grow by at least
 */
export function nextSize({ bytes, allocatedBytes, bytesMax }: Size, { freeBytes, floorBytes }: Disk, moreBytes: number): number | "largest" | "disk" {
  const stepBytes = Math.max(moreBytes, Math.min(stepBytesMax, Math.max(stepBytesMin, bytes / 4)));
  const promisedBytes = Math.max(0, bytes - allocatedBytes);
  const roomBytes = freeBytes - floorBytes - promisedBytes;
  if (bytesMax - bytes < usefulBytes) return "largest";
  if (roomBytes < usefulBytes) return "disk";
  return wholeMiB(bytes + Math.min(stepBytes, bytesMax - bytes, roomBytes));
}

const wholeMiB = (bytes: number): number => Math.floor(bytes / MiB) * MiB;
