/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks of the machine: limits, devices, permissions and sizes that fabrics depend on. */
#ifndef INFO_CHECKS_H
#define INFO_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum check_state {
	CHECK_OK,
	CHECK_NOTE, /* restricts some fabrics, or costs speed */
	CHECK_BAD,  /* something does not work */
};

struct check {
	const char *what;
	/* Writes the finding and its remedy to @text. */
	enum check_state (*run)(char *text, size_t len);
	/* the names of fabrics that it matters to; none: to all */
	const char *fabrics[4];
};

extern const struct check checks[];
extern const size_t n_checks;

#define CHECK_TEXT_MAX 400

/* The prefix of all paths that are checked: empty, unless a test sets it. */
extern const char *checks_root;

/* The row of RDMA devices, which also explains why a fabric on RDMA is not usable. */
enum check_state check_rdma(char *text, size_t len);
/* The row of /dev/shm, which also explains why shared memory is not usable. */
enum check_state check_shm(char *text, size_t len);
/* Sets *@has_lo to whether lo is up; true if that is unknown. */
enum check_state check_interfaces(char *text, size_t len, bool *has_lo);
/* The descriptors that the process may open. Bad if they are too few for an IA. */
enum check_state check_files(char *text, size_t len);

/*
 * Reads the range of ports that the system picks from. Returns false, with the kernel's default, if
 * that is unknown.
 */
bool check_ephemeral(long *first, long *last);

/* Prints a row: its name, the state in a word, and a text. */
void check_row(FILE *out, const char *what, enum check_state state, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Prints the rows that matter to one of the fabrics named in the text @fabrics; NULL: all rows. */
void checks_print(FILE *out, const char *fabrics);

#endif
