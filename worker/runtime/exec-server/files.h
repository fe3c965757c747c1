/* What a keeper does by itself instead of starting a command: see files.c. */
#ifndef SANDGATE_FILES_H
#define SANDGATE_FILES_H

/*
 * Reads or writes a file.
 *
 *   read PATH              writes the content to the standard output of these streams
 *   write PATH NAME MODE   takes the content from the standard input; NAME is that of the file beside it until it is whole
 *
 * Returns an exit code, as the programs for larger files have them.
 */
int work_on_file(char *const *arguments, int count, const int *streams);

#endif
