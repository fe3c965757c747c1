/** What restored sandboxes and clones hold on a volume. */
import { contentTests } from "./content.ts";

await contentTests("snap-content-volume", {});
